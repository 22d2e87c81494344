#include "storage/weights/tokenizer_files.h"

#include <sys/stat.h>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenizerFilesTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(dir_.File(name), text).ok());
  }
  const TestDir dir_;
};

TEST_F(TokenizerFilesTest, ReadsKnownNamesOnly) {
  Write("tokenizer.json", "{\"model\": {}}");
  Write("merges.txt", "a b");
  Write("model.safetensors", "weights");
  Write("secret.txt", "secret");
  Write("config.json", R"({"bos_token_id": 1, "eos_token_id": 2})");
  Write("generation_config.json", R"({"eos_token_id": [5, 6]})");
  const auto tokenizer = ReadTokenizerFiles(dir_.path(), 100);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ASSERT_EQ(tokenizer->files.size(), 2u);
  EXPECT_EQ(tokenizer->files[0].name, "tokenizer.json");
  EXPECT_EQ(tokenizer->files[0].contents, "{\"model\": {}}");
  EXPECT_EQ(tokenizer->files[1].name, "merges.txt");
  EXPECT_EQ(tokenizer->ids, (HfTokenIds{.begin = 1, .ends = {5, 6}}));
}

TEST_F(TokenizerFilesTest, ABrokenFileIsNamed) {
  Write("tokenizer.json", "{\"model\": {");
  EXPECT_EQ(ReadTokenizerFiles(dir_.path(), 100).status().message(),
            dir_.File("tokenizer.json") + " is not JSON; fetch it again");
}

TEST_F(TokenizerFilesTest, AFolderWithoutATokenizerIsRejected) {
  Write("config.json", "{}");
  const auto none = ReadTokenizerFiles(dir_.path(), 100);
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_THAT(
      std::string(none.status().message()),
      AllOf(HasSubstr(dir_.path()), HasSubstr("has no file of a tokenizer: none of tokenizer.json, ")));
  EXPECT_TRUE(absl::IsNotFound(ReadTokenizerFiles(dir_.File("absent"), 100).status()));
}

TEST_F(TokenizerFilesTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(dir_.File("tokenizer.json").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadTokenizerFiles(dir_.path(), 100).status()));
}

}  // namespace
}  // namespace atl
