#include "worker/data/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/dataset.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::WriteBytes;

const TokenizeProgress kSilent = [](uint64_t, uint64_t) {};

void WriteGzip(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(file);
}

TEST(TokenizeTest, HoldsOutTheEndOfTheText) {
  const std::string folder = TemporaryFolder();
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  WriteBytes(JoinPath(folder, "1"), text.substr(0, 300));
  WriteGzip(JoinPath(folder, "2.gz"), text.substr(300));
  uint64_t last = 0, total = 0;
  const auto made = Tokenize(ByteTokenizer(),
                             {.inputs = {JoinPath(folder, "1"), JoinPath(folder, "2.gz")},
                              .folder = JoinPath(folder, "out"),
                              .validation_fraction = 0.05},
                             [&](uint64_t done, uint64_t of) {
                               EXPECT_GE(done, last);
                               last = done;
                               total = of;
                             });
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(last, total);  // in bytes of the files as they are
  EXPECT_EQ(made->validation.tokens, 50u);
  const auto dataset = Dataset::Open(JoinPath(folder, "out"), {256, 4, "bytes"});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<TokenId> train(950);
  EXPECT_TRUE(dataset->ReadTrain(0, train).ok());
  const std::vector<TokenId> validation = dataset->validation().Tokens();
  EXPECT_EQ(ByteTokenizer().Decode(train) + ByteTokenizer().Decode(validation), text);
  EXPECT_THAT(*ListDir(JoinPath(folder, "out")),
              ::testing::ElementsAre("meta.json", "train_000.bin", "val.bin"));
}

TEST(TokenizeTest, FilesLargerThanAPieceHaveTheTokensOfTheirWholeText) {
  const std::string folder = TemporaryFolder();
  std::string vocabulary, text;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary += absl::StrCat(absl::Base64Escape(std::string(1, static_cast<char>(byte))), " ", byte, "\n");
  }
  vocabulary += absl::StrCat(absl::Base64Escape("the"), " 257\n", absl::Base64Escape("th"), " 256\n");
  WriteBytes(JoinPath(folder, "own.tiktoken"), vocabulary);
  EXPECT_FALSE(MakeFileTokenizer(JoinPath(folder, "own.tiktoken"), "").ok());
  const auto tokenizer = MakeFileTokenizer(JoinPath(folder, "own.tiktoken"), "gpt2");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  // Words without a line end between them for more than one piece, so that a piece of input ends inside a
  // word.
  while (text.size() < 1200000) text += "the\u00e9";
  text += "\n\n the end\nthe";
  WriteBytes(JoinPath(folder, "text"), text);
  const auto made = Tokenize(
      **tokenizer, {.inputs = {JoinPath(folder, "text")}, .folder = JoinPath(folder, "out")}, kSilent);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->tokenizer.starts_with("gpt2-"));
  const auto dataset = Dataset::Open(JoinPath(folder, "out"), {258, 4, made->tokenizer});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<TokenId> all(dataset->train_tokens());
  ASSERT_TRUE(dataset->ReadTrain(0, all).ok());
  const std::vector<TokenId> validation = dataset->validation().Tokens();
  all.insert(all.end(), validation.begin(), validation.end());
  std::vector<TokenId> expected;
  (*tokenizer)->Encode(text, expected);
  EXPECT_EQ(all, expected);
}

TEST(TokenizeTest, StandardInputHasProgressToo) {
  const std::string folder = TemporaryFolder();
  WriteBytes(JoinPath(folder, "1"), std::string(300, 'a'));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int stdin_before = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  ASSERT_EQ(::write(ends[1], std::string(1000, 'b').data(), 1000), 1000);
  ::close(ends[0]);
  ::close(ends[1]);
  uint64_t last = 0, total = 1;
  const auto made =
      Tokenize(ByteTokenizer(), {.inputs = {"-", JoinPath(folder, "1")}, .folder = JoinPath(folder, "out")},
               [&](uint64_t done, uint64_t of) {
                 last = done;
                 total = of;
               });
  ASSERT_EQ(::dup2(stdin_before, STDIN_FILENO), STDIN_FILENO);
  ::close(stdin_before);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(last, 1300u);
  EXPECT_EQ(total, 0u) << "not known";
}

TEST(TokenizeTest, RejectsWhatItCannotDo) {
  const std::string folder = TemporaryFolder();
  const std::string file = JoinPath(folder, "text"), out = JoinPath(folder, "new/out");
  WriteBytes(file, "ab");
  const auto message = [&](const TokenizeOptions& options) {
    return std::string(Tokenize(ByteTokenizer(), options, kSilent).status().message());
  };
  EXPECT_THAT(message({.inputs = {file}, .folder = out}), HasSubstr("2 tokens: too few"));
  EXPECT_THAT(message({.inputs = {folder}, .folder = out}), HasSubstr("is a folder"));
  EXPECT_THAT(message({.inputs = {"/nowhere"}, .folder = out}), HasSubstr("/nowhere"));
  EXPECT_THAT(message({.inputs = {}, .folder = out}), HasSubstr("no text file"));
  EXPECT_THAT(message({.inputs = {file}, .folder = out, .validation_fraction = 1}), HasSubstr("below 1"));
  EXPECT_FALSE(FileExists(JoinPath(folder, "new"))) << "what a failed call made is gone";
  WriteBytes(JoinPath(folder, "meta.json"), "{}");
  EXPECT_THAT(message({.inputs = {file}, .folder = folder}), HasSubstr("already holds a dataset"));
}

TEST(TokenizeTest, WritesIntoNoFolderOfOtherFiles) {
  const std::string folder = TemporaryFolder(), text = JoinPath(folder, "text");
  WriteBytes(text, std::string(1000, 'a'));
  const TokenizeOptions into = {.inputs = {text}, .folder = folder};
  const absl::Status rejected = Tokenize(ByteTokenizer(), into, kSilent).status();
  EXPECT_TRUE(absl::IsAlreadyExists(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()),
              ::testing::AllOf(HasSubstr("holds other files (text)"), HasSubstr(folder + "/tokens")));
  EXPECT_THAT(*ListDir(folder), ::testing::ElementsAre("text"));
  // An empty folder is nobody's, and a killed call's files are written over.
  const std::string out = JoinPath(folder, "out");
  ASSERT_TRUE(CreateDirs(out).ok());
  for (const char* name : {"tokens.tmp", "train_000.bin", "val.bin.tmp"})
    WriteBytes(JoinPath(out, name), "x");
  EXPECT_TRUE(Tokenize(ByteTokenizer(), {.inputs = {text}, .folder = out}, kSilent).ok());
  // Without the spool they are somebody's shards.
  const std::string shards = JoinPath(folder, "shards");
  ASSERT_TRUE(CreateDirs(shards).ok());
  WriteBytes(JoinPath(shards, "train_000.bin"), "x");
  EXPECT_TRUE(absl::IsAlreadyExists(
      Tokenize(ByteTokenizer(), {.inputs = {text}, .folder = shards}, kSilent).status()));
  EXPECT_EQ(*ReadFile(JoinPath(shards, "train_000.bin")), "x");
}

TEST(TokenizeTest, TwoCallsNeverWriteIntoOneFolder) {
  const std::string folder = TemporaryFolder();
  const std::string first = JoinPath(folder, "first"), second = JoinPath(folder, "second");
  const std::string out = JoinPath(folder, "out");
  WriteBytes(first, std::string(1000, 'a'));
  WriteBytes(second, std::string(500, 'b'));
  absl::Status rejected;
  const auto made = Tokenize(ByteTokenizer(), {.inputs = {first}, .folder = out}, [&](uint64_t, uint64_t) {
    rejected = Tokenize(ByteTokenizer(), {.inputs = {second}, .folder = out}, kSilent).status();
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("folder " + out + " is in use"));
  ASSERT_TRUE(made.ok()) << made.status();
  const auto dataset = Dataset::Open(out, {256, 4, "bytes"});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<TokenId> train(950);
  EXPECT_TRUE(dataset->ReadTrain(0, train).ok());
  EXPECT_EQ(ByteTokenizer().Decode(train), std::string(950, 'a'));
  EXPECT_THAT(*ListDir(out), ::testing::ElementsAre("meta.json", "train_000.bin", "val.bin"));
}

TEST(TokenizeTest, NamesADamagedGzipFile) {
  const std::string folder = TemporaryFolder();
  const std::string file = JoinPath(folder, "text.gz");
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 100000; ++i)
    noise += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  WriteGzip(file, noise);
  const std::string bytes = *ReadFile(file);
  WriteBytes(file, bytes.substr(0, bytes.size() / 2));
  const absl::Status status =
      Tokenize(ByteTokenizer(), {.inputs = {file}, .folder = JoinPath(folder, "out")}, kSilent).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(file));
  EXPECT_FALSE(FileExists(JoinPath(folder, "out")));
}

TEST(TokenizerTest, BytesComeBack) {
  std::string text = "caf\xC3\xA9";
  text += '\0';
  std::vector<TokenId> tokens;
  ByteTokenizer().Encode(text, tokens);
  EXPECT_EQ(tokens.size(), 6u);
  EXPECT_EQ(ByteTokenizer().Decode(tokens), text);
  EXPECT_EQ(ByteTokenizer().Decode(std::vector<TokenId>{'a', 300}), "a\xEF\xBF\xBD");
  EXPECT_THAT(std::string(MakeTokenizer("gpt2").status().message()), HasSubstr("Atoll has only 'bytes'"));
}

}  // namespace
}  // namespace atl
