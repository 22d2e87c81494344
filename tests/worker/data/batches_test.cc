#include "worker/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/adopt.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using testing::TokenBytes;
using testing::WriteBytes;

constexpr uint32_t kContext = 4;

// Training tokens 0..80 (20 samples), validation 100..110 (2 samples).
std::shared_ptr<const TrainingData> CountingDataset(const std::string& folder = testing::TemporaryFolder()) {
  std::vector<TokenId> train(81), validation(11);
  for (size_t i = 0; i < train.size(); ++i) train[i] = static_cast<uint16_t>(i);
  for (size_t i = 0; i < validation.size(); ++i) validation[i] = static_cast<uint16_t>(100 + i);
  WriteBytes(JoinPath(folder, "train.bin"), TokenBytes(train));
  WriteBytes(JoinPath(folder, "val.bin"), TokenBytes(validation));
  const AdoptOptions options = {.folder = folder, .tokenizer = "bytes", .vocabulary = 256};
  EXPECT_TRUE(Adopt(options, [](uint64_t, uint64_t) {}).ok());
  return std::make_shared<const TrainingData>(TrainingData::Open(folder, {256, kContext, "bytes"}).value());
}

TEST(TrainingSamplesTest, TargetsAreInputsShiftedByOne) {
  TrainingSamples samples(CountingDataset(), {kContext}, 1337, 0, 1);
  Batch batch;
  EXPECT_TRUE(samples.Read(0, 3, batch).ok());
  ASSERT_EQ(batch.inputs.size(), 3u * kContext);
  for (size_t i = 0; i < batch.inputs.size(); ++i) EXPECT_EQ(batch.targets[i], batch.inputs[i] + 1);
  EXPECT_EQ(batch.inputs[0] % kContext, 0);
  EXPECT_EQ(batch.inputs[1], batch.inputs[0] + 1);
}

TEST(TrainingSamplesTest, PartitionsTogetherReadEverySampleOnce) {
  const auto dataset = CountingDataset();
  std::multiset<int64_t> starts;
  for (uint32_t partition = 0; partition < 4; ++partition) {
    TrainingSamples samples(dataset, {kContext}, 1337, partition, 4);
    Batch batch;
    EXPECT_TRUE(samples.Read(0, 5, batch).ok());  // 20 samples in 4 partitions
    for (size_t row = 0; row < 5; ++row) starts.insert(batch.inputs[row * kContext]);
  }
  EXPECT_EQ(starts.size(), 20u);
  EXPECT_EQ(std::set<int64_t>(starts.begin(), starts.end()).size(), 20u);
}

TEST(TrainingSamplesTest, ThePositionAloneDecidesWhatIsRead) {
  const auto dataset = CountingDataset();
  TrainingSamples samples(dataset, {kContext}, 7, 1, 2), resumed(dataset, {kContext}, 7, 1, 2);
  Batch all, tail;
  EXPECT_TRUE(samples.Read(0, 30, all).ok());  // three passes of this partition's 10 samples
  EXPECT_TRUE(resumed.Read(24, 6, tail).ok());
  EXPECT_TRUE(
      std::equal(tail.inputs.begin(), tail.inputs.end(), all.inputs.begin() + ptrdiff_t{24} * kContext));
}

TEST(TrainingSamplesTest, DocumentsEndWithTheirToken) {
  const std::string folder = testing::TemporaryFolder();
  WriteBytes(JoinPath(folder, "train.bin"), TokenBytes({9, 10, 5, 9, 9, 8, 7, 6, 9, 3, 2}));
  WriteBytes(JoinPath(folder, "val.bin"), TokenBytes({1, 9, 2, 3, 4, 5}));
  const AdoptOptions options = {.folder = folder, .tokenizer = "gpt2", .vocabulary = 256, .end_of_text = 9};
  ASSERT_TRUE(Adopt(options, [](uint64_t, uint64_t) {}).ok());
  const auto data =
      std::make_shared<const TrainingData>(TrainingData::Open(folder, {256, 5, "gpt2"}).value());
  ASSERT_EQ(data->end_of_text(), 9u);
  const SequenceOptions sequences = {.context = 5, .end_of_document = data->end_of_text()};
  Batch batch;
  ASSERT_TRUE(TrainingSamples(data, sequences, 1, 0, 1).Read(0, 2, batch).ok());
  const size_t first = batch.inputs[1] == 10 ? 0 : 5;
  const auto row = [&](const std::vector<int64_t>& values, size_t begin) {
    return std::vector<int64_t>(values.begin() + static_cast<ptrdiff_t>(begin),
                                values.begin() + static_cast<ptrdiff_t>(begin) + 5);
  };
  EXPECT_THAT(row(batch.inputs, first), ElementsAre(9, 10, 5, 9, 9));
  EXPECT_THAT(row(batch.documents, first), ElementsAre(0, 1, 1, 1, 2));
  EXPECT_THAT(row(batch.positions, first), ElementsAre(0, 0, 1, 2, 0));
  EXPECT_THAT(row(batch.targets, first), ElementsAre(kIgnoredTarget, 5, 9, kIgnoredTarget, kIgnoredTarget));
  EXPECT_THAT(row(batch.documents, 5 - first), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(row(batch.positions, 5 - first), ElementsAre(0, 1, 2, 3, 0));
  EXPECT_THAT(row(batch.targets, 5 - first), ElementsAre(7, 6, 9, kIgnoredTarget, 2));
  EXPECT_EQ(batch.counted_targets(), 6u);
  // Held-out text too.
  EXPECT_EQ(ValidationSamples(data, sequences).Read(0, 1, batch).value(), 1u);
  EXPECT_THAT(batch.targets, ElementsAre(9, kIgnoredTarget, 3, 4, 5));
  // Without it nothing is divided.
  ASSERT_TRUE(TrainingSamples(data, {5}, 1, 0, 1).Read(0, 2, batch).ok());
  EXPECT_TRUE(batch.documents.empty());
  EXPECT_EQ(batch.counted_targets(), 10u);
}

TEST(ValidationSamplesTest, ReadsTheTextInOrderAndStopsAtItsEnd) {
  ValidationSamples samples(CountingDataset(), {kContext});
  Batch batch;
  EXPECT_EQ(samples.Read(0, 8, batch).value(), 2u);
  EXPECT_THAT(batch.inputs, ElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
  EXPECT_THAT(batch.targets, ElementsAre(101, 102, 103, 104, 105, 106, 107, 108));
  EXPECT_EQ(samples.Read(2, 8, batch).value(), 0u);
}

TEST(SamplesTest, AFileThatWasTruncatedIsNamed) {
  // In one page: reading it through a mapping would give zeros, and a wrong loss.
  const std::string folder = testing::TemporaryFolder();
  const auto dataset = CountingDataset(folder);
  TrainingSamples training(dataset, {kContext}, 7, 0, 1);
  ValidationSamples validation(dataset, {kContext});
  Batch batch;
  ASSERT_TRUE(training.Read(0, 20, batch).ok());
  std::filesystem::resize_file(JoinPath(folder, "train.bin"), 1024 + 2 * 40);
  std::filesystem::resize_file(JoinPath(folder, "val.bin"), 1024 + 2 * 5);
  const absl::Status trained = training.Read(0, 20, batch);
  EXPECT_EQ(trained.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(trained.ToString(), ::testing::HasSubstr(JoinPath(folder, "train.bin")));
  EXPECT_TRUE(validation.Read(0, 1, batch).ok()) << "what is there is read";
  const absl::Status evaluated = validation.Read(0, 2, batch).status();
  EXPECT_EQ(evaluated.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(evaluated.ToString(), ::testing::HasSubstr(JoinPath(folder, "val.bin")));
}

}  // namespace
}  // namespace atl
