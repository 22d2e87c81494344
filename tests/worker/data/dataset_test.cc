#include "worker/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/tokenize/tokenize.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TokenBytes;
using testing::WriteBytes;

constexpr uint32_t kContext = 4;
const DatasetRequirements kBytes = {256, kContext, "bytes"};

// A folder made from this text, in training files of 10 tokens.
std::string Folder(const std::string& text) {
  const std::string folder = TemporaryFolder();
  const std::string file = JoinPath(folder, "text.txt");
  WriteBytes(file, text);
  const std::string out = JoinPath(folder, "tokens");
  const SystemClock clock{};
  const auto made = Tokenize(
      ByteTokenizer(),
      {.inputs = {file}, .folder = out, .validation = {.share = 0.25, .files = {}}, .tokens_per_file = 10},
      clock, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return out;
}

std::string OpenMessage(const std::string& folder, const DatasetRequirements& requirements) {
  return std::string(Dataset::Open(folder, requirements).status().message());
}

TEST(DatasetTest, ReadsAcrossFiles) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(Folder("abcdefghijklmnopqrstuvwxyz012345"), kBytes);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->description().train.size(), 3u);
  EXPECT_EQ(dataset->train_tokens(), 24u);
  std::vector<TokenId> all(24);
  EXPECT_TRUE(dataset->ReadTrain(0, all).ok());
  EXPECT_EQ(std::string(all.begin(), all.end()), "abcdefghijklmnopqrstuvwx");
  std::vector<TokenId> across(12);
  EXPECT_TRUE(dataset->ReadTrain(9, across).ok());
  EXPECT_EQ(std::string(across.begin(), across.end()), "jklmnopqrstu");
  EXPECT_THAT(dataset->validation().Tokens(), ElementsAre('y', 'z', '0', '1', '2', '3', '4', '5'));
}

TEST(DatasetTest, RejectsWhatTheModelDoesNotFit) {
  const std::string folder = Folder("abcdefghijklmnopqrstuvwxyz012345");
  EXPECT_THAT(OpenMessage(folder, {256, kContext, "gpt2"}), HasSubstr("made by tokenizer 'bytes'"));
  EXPECT_THAT(OpenMessage(folder, {65, kContext, "bytes"}),
              HasSubstr("vocabulary is 256, but model.gpt.vocabulary is 65"));
  EXPECT_THAT(OpenMessage(folder, {256, 8, "bytes"}), HasSubstr("held-out text"));
  EXPECT_THAT(OpenMessage(folder, {256, 24, "bytes"}), HasSubstr("training text"));
}

TEST(DatasetTest, NamesTheDamagedFile) {
  const std::string folder = Folder("abcdefghijklmnopqrstuvwxyz012345");
  const std::string second = JoinPath(folder, "train_001.bin");
  const std::string bytes = *ReadFile(second);
  WriteBytes(second, bytes.substr(0, bytes.size() - 2));
  EXPECT_THAT(OpenMessage(folder, kBytes), ::testing::AllOf(HasSubstr(second), HasSubstr("truncated")));
  WriteBytes(second, TokenBytes({1, 2, 3}));
  EXPECT_THAT(OpenMessage(folder, kBytes), HasSubstr("3 tokens, but meta.json says 10"));
  EXPECT_TRUE(RemoveFile(second).ok());
  EXPECT_EQ(Dataset::Open(folder, kBytes).status().code(), absl::StatusCode::kNotFound);
}

TEST(DatasetTest, VerifiesEveryToken) {
  const std::string folder = Folder("abcdefghijklmnopqrstuvwxyz012345");
  EXPECT_TRUE(Dataset::Open(folder, kBytes)->VerifyContents().ok());
  const std::string third = JoinPath(folder, "train_002.bin");
  std::string bytes = *ReadFile(third);
  bytes[1024] ^= 1;
  WriteBytes(third, bytes);
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder, kBytes);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(std::string(dataset->VerifyContents().message()), HasSubstr(third));
}

TEST(DatasetTest, RejectsADescriptionThatWasChanged) {
  const std::string folder = Folder("abcdefghijklmnopqrstuvwxyz012345");
  const std::string meta = JoinPath(folder, "meta.json");
  std::string json = *ReadFile(meta);
  json.replace(json.find("\"bytes\""), 7, "\"other\"");
  WriteBytes(meta, json);
  EXPECT_THAT(OpenMessage(folder, {256, kContext, ""}), HasSubstr("fingerprint"));
  WriteBytes(meta, "{\"tokenizer\": 3}");
  EXPECT_THAT(OpenMessage(folder, kBytes), ::testing::AllOf(HasSubstr(meta), HasSubstr("must be string")));
}

TEST(DatasetTest, TheFingerprintIsOfTheContents) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz012345";
  const std::string first = Dataset::Open(Folder(text), kBytes)->fingerprint();
  EXPECT_EQ(Dataset::Open(Folder(text), kBytes)->fingerprint(), first);
  EXPECT_NE(Dataset::Open(Folder("Abcdefghijklmnopqrstuvwxyz012345"), kBytes)->fingerprint(), first);
  EXPECT_EQ(first.size(), 64u);
}

TEST(DatasetTest, NamesTheRemedyForAFolderWithoutADescription) {
  const std::string folder = TemporaryFolder();
  EXPECT_THAT(OpenMessage(folder, kBytes), HasSubstr("atoll-data tokenize"));
  WriteBytes(JoinPath(folder, "text_train_000001.bin"), TokenBytes({1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(OpenMessage(folder, kBytes), HasSubstr("atoll-data adopt " + folder + " --tokenizer gpt2"));
  EXPECT_EQ(Dataset::Open(folder, kBytes).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atl
