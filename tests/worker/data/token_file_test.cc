#include "worker/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/token_file_writer.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TokenBytes;
using testing::WriteBytes;

// Opens these bytes as a token file with a vocabulary of 256; the status must name the file.
absl::Status Open(const std::string& bytes) {
  const std::string path = JoinPath(TemporaryFolder(), "text.bin");
  WriteBytes(path, bytes);
  const absl::Status status = TokenFile::Open(path, 256).status();
  if (!status.ok()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  return status;
}

TEST(TokenFileTest, ReadsTokensInPlace) {
  const std::string path = JoinPath(TemporaryFolder(), "text.bin");
  WriteBytes(path, TokenBytes({1, 2, 255}));
  const absl::StatusOr<TokenFile> file = TokenFile::Open(path, 256);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->tokens().Tokens(), ElementsAre(1, 2, 255));
}

TEST(TokenFileTest, ReadsTokensOfFourBytes) {
  const std::string path = JoinPath(TemporaryFolder(), "text.bin");
  WriteBytes(path, TokenBytes(20240801, 7, 3, {128255, 1, 70000}));
  const absl::StatusOr<TokenFile> file = TokenFile::Open(path, 128256);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->tokens().Tokens(), ElementsAre(128255, 1, 70000));
  std::vector<TokenId> part(2);
  ASSERT_TRUE(file->Read(1, part).ok());
  EXPECT_THAT(part, ElementsAre(1, 70000));
  EXPECT_THAT(std::string(TokenFile::Open(path, 128255).status().message()),
              AllOf(HasSubstr("token 128255 at position 0"), HasSubstr("vocabulary of 128255")));
}

TEST(TokenFileTest, MissingFile) {
  const absl::Status status = TokenFile::Open("/nowhere/text.bin", 256).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/text.bin"));
}

TEST(TokenFileTest, SaysWhatIsWrongWithTheFile) {
  const std::string good = TokenBytes({1, 2, 3, 4});
  EXPECT_THAT(std::string(Open(good.substr(0, 100)).message()),
              HasSubstr("shorter than the 1024-byte header"));
  EXPECT_THAT(
      std::string(Open(good.substr(0, good.size() - 2)).message()),
      AllOf(HasSubstr("says 4 tokens (1032 bytes)"), HasSubstr("has 1030 bytes"), HasSubstr("truncated")));
  EXPECT_THAT(std::string(Open(good + "xx").message()), HasSubstr("too long"));
  EXPECT_THAT(std::string(Open(TokenBytes(7, 1, 1, {1})).message()), HasSubstr("not an llm.c token file"));
  EXPECT_THAT(std::string(Open(TokenBytes(20240520, 3, 1, {1})).message()), HasSubstr("format version 3"));
  EXPECT_THAT(std::string(Open(TokenBytes(20240801, 1, 1, {1})).message()),
              HasSubstr("format version 1; with the magic number 20240801, only version 7 is supported"));
  EXPECT_THAT(std::string(Open(TokenBytes(20240801, 7, 2, {1})).message()),
              HasSubstr("says 2 tokens (1032 bytes)"));
  EXPECT_THAT(std::string(Open(TokenBytes(20240520, 1, -1, {})).message()),
              HasSubstr("negative token count -1"));
}

TEST(TokenFileTest, NamesATokenOfAnotherVocabulary) {
  EXPECT_THAT(std::string(Open(TokenBytes({1, 2, 300, 50000})).message()),
              AllOf(HasSubstr("token 300 at position 2"), HasSubstr("vocabulary of 256"),
                    HasSubstr("largest token: 50000")));
  EXPECT_TRUE(Open(TokenBytes({0, 255})).ok());
}

TEST(TokenFileWriterTest, TheFileAppearsWhenItIsComplete) {
  const std::string folder = TemporaryFolder();
  const std::string path = JoinPath(folder, "out.bin");
  {
    absl::StatusOr<TokenFileWriter> writer = TokenFileWriter::Create(path, TokenWidth::kTwoBytes);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const std::vector<TokenId> tokens = {5, 6};
    ASSERT_TRUE(writer->Append(tokens).ok());
    EXPECT_FALSE(FileExists(path));
    ASSERT_TRUE(writer->Append(tokens).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, TokenBytes({5, 6, 5, 6}));
}

TEST(TokenFileWriterTest, ALargeVocabularyHasTokensOfFourBytes) {
  const std::string path = JoinPath(TemporaryFolder(), "out.bin");
  absl::StatusOr<TokenFileWriter> writer = TokenFileWriter::Create(path, WidthFor(1 << 20));
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<TokenId> tokens = {5, (1 << 20) - 1};
  ASSERT_TRUE(writer->Append(tokens).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(*ReadFile(path), TokenBytes(20240801, 7, 2, tokens));
}

TEST(TokenFileWriterTest, AnUnfinishedFileLeavesNothing) {
  const std::string folder = TemporaryFolder();
  {
    absl::StatusOr<TokenFileWriter> writer =
        TokenFileWriter::Create(JoinPath(folder, "out.bin"), TokenWidth::kTwoBytes);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->Append(std::vector<TokenId>{1}).ok());
  }
  EXPECT_THAT(*ListDir(folder), ElementsAre());
}

}  // namespace
}  // namespace atl
