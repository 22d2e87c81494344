#include "worker/data/background_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/file.h"
#include "common/sleeper.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/adopt.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TokenBytes;
using testing::WriteBytes;

/// Two training files and a held-out one.
std::string Folder(size_t tokens) {
  const std::string folder = TemporaryFolder();
  WriteBytes(JoinPath(folder, "train_0.bin"), TokenBytes(std::vector<TokenId>(tokens, 1)));
  WriteBytes(JoinPath(folder, "train_1.bin"), TokenBytes(std::vector<TokenId>(tokens, 2)));
  WriteBytes(JoinPath(folder, "val.bin"), TokenBytes(std::vector<TokenId>(100, 3)));
  EXPECT_TRUE(
      Adopt({.folder = folder, .tokenizer = "bytes", .vocabulary = 256}, [](uint64_t, uint64_t) {}).ok());
  return folder;
}

std::shared_ptr<const TrainingData> Open(const std::string& folder) {
  return std::make_shared<const TrainingData>(TrainingData::Open(folder, {256, 4, "bytes"}).value());
}

void SleepSeconds(double seconds) { InterruptibleSleeper().SleepFor(Seconds(seconds)); }

TEST(BackgroundCheckTest, FindsNothingInGoodFiles) {
  BackgroundCheck check(Open(Folder(3'000'000)));
  EXPECT_TRUE(check.Wait().ok()) << check.status();
  EXPECT_TRUE(check.status().ok());
}

TEST(BackgroundCheckTest, NamesTheShardThatDiffers) {
  const std::string folder = Folder(1000);
  // Of the right size and inside the vocabulary, so that opening it finds nothing.
  std::vector<TokenId> tokens(1000, 2);
  tokens[777] = 5;
  WriteBytes(JoinPath(folder, "train_1.bin"), TokenBytes(tokens));
  BackgroundCheck check(Open(folder));
  EXPECT_THAT(std::string(check.Wait().message()),
              HasSubstr(JoinPath(folder, "train_1.bin") + ": the SHA-256"));
  EXPECT_EQ(check.status(), check.Wait());
}

TEST(BackgroundCheckTest, NamesAShardThatWasCut) {
  const std::string folder = Folder(1000);
  const auto dataset = Open(folder);
  WriteBytes(JoinPath(folder, "val.bin"), TokenBytes({1, 2}));
  BackgroundCheck check(dataset);
  EXPECT_THAT(std::string(check.Wait().message()), HasSubstr(JoinPath(folder, "val.bin")));
}

TEST(BackgroundCheckTest, NamesAShardThatIsWrittenToInUse) {
  const std::string folder = Folder(1000);
  BackgroundCheck check(Open(folder), Seconds(0.01));
  ASSERT_TRUE(check.Wait().ok()) << check.status();
  SleepSeconds(0.05);  // file systems count the time of a write in steps of some milliseconds
  std::fstream file(JoinPath(folder, "train_0.bin"), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(1500);  // behind the header
  file.put(9);
  file.close();
  for (int i = 0; i < 1000 && check.status().ok(); ++i) SleepSeconds(0.01);
  EXPECT_TRUE(absl::IsNotFound(check.status())) << check.status();
  EXPECT_THAT(std::string(check.status().message()),
              HasSubstr(JoinPath(folder, "train_0.bin") + ": the SHA-256"));
}

TEST(BackgroundCheckTest, EndsEarly) { const BackgroundCheck check(Open(Folder(5'000'000))); }

}  // namespace
}  // namespace atl
