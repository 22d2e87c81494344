#include "worker/data/prefetched_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/adopt.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TokenBytes;
using testing::WriteBytes;

constexpr uint32_t kContext = 4;

std::shared_ptr<const TrainingData> CountingDataset(const std::string& folder) {
  std::vector<TokenId> train(4001);
  std::iota(train.begin(), train.end(), 0);
  WriteBytes(JoinPath(folder, "train.bin"), TokenBytes(train));
  WriteBytes(JoinPath(folder, "val.bin"), TokenBytes({1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(
      Adopt({.folder = folder, .tokenizer = "gpt2", .vocabulary = 50257}, [](uint64_t, uint64_t) {}).ok());
  return std::make_shared<const TrainingData>(TrainingData::Open(folder, {50257, kContext, "gpt2"}).value());
}

TEST(PrefetchedSamplesTest, ReadsWhatTrainingSamplesRead) {
  const auto dataset = CountingDataset(TemporaryFolder());
  TrainingSamples plain(dataset, {kContext}, 3, 1, 2);
  PrefetchedSamples prefetched(TrainingSamples(dataset, {kContext}, 3, 1, 2));
  std::mt19937 random(1);
  Batch expected, batch;
  uint64_t position = 0;
  uint32_t sequences = 4;
  for (int i = 0; i < 3000; ++i) {
    // In order for the most part, with jumps, repetitions and batches of another size.
    if (random() % 5 == 0) position = random() % 5000;
    if (random() % 9 == 0) sequences = 1 + random() % 8;
    ASSERT_TRUE(plain.Read(position, sequences, expected).ok());
    ASSERT_TRUE(prefetched.Read(position, sequences, batch).ok());
    ASSERT_EQ(batch.inputs, expected.inputs) << position;
    ASSERT_EQ(batch.targets, expected.targets);
    if (random() % 7 != 0) position += sequences;
  }
}

TEST(PrefetchedSamplesTest, AnErrorIsThatOfTheBatch) {
  const std::string folder = TemporaryFolder();
  PrefetchedSamples samples(TrainingSamples(CountingDataset(folder), {kContext}, 3, 0, 1));
  Batch batch;
  ASSERT_TRUE(samples.Read(0, 2, batch).ok());
  WriteBytes(JoinPath(folder, "train.bin"), TokenBytes({1, 2}));
  // Only the batch that was read ahead may still be whole.
  int whole = 0;
  for (uint64_t position = 2; position < 200; position += 2) {
    const absl::Status status = samples.Read(position, 2, batch);
    whole += status.ok() ? 1 : 0;
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("train.bin"));
    }
  }
  EXPECT_LE(whole, 2);
}

TEST(PrefetchedSamplesTest, EndsWhileItReads) {
  const auto dataset = CountingDataset(TemporaryFolder());
  for (int i = 0; i < 100; ++i) {
    PrefetchedSamples samples(TrainingSamples(dataset, {kContext}, 3, 0, 1));
    Batch batch;
    if (i % 2 == 0) {
      EXPECT_TRUE(samples.Read(0, 100, batch).ok());
    }
  }
}

}  // namespace
}  // namespace atl
