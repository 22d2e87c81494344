#include "worker/data/tokenize/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "tests/worker/data/input/compressed.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/dataset.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Gzip;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::WriteBytes;
using testing::Zstd;
using By = ValidationChoice::By;

absl::StatusOr<TokenizeResult> Make(const TokenizeOptions& options, const TokenizeEvents& events = {}) {
  const SystemClock clock{};
  return Tokenize(ByteTokenizer(), options, clock, events);
}

std::string Message(const TokenizeOptions& options) { return std::string(Make(options).status().message()); }

/// The training text and the held-out text of a dataset of bytes.
std::pair<std::string, std::string> Texts(const std::string& folder) {
  const auto dataset = Dataset::Open(folder, {256, 0, "bytes"});
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  if (!dataset.ok()) return {};
  EXPECT_TRUE(dataset->VerifyContents().ok());
  std::vector<TokenId> train(dataset->train_tokens());
  EXPECT_TRUE(dataset->ReadTrain(0, train).ok());
  return {ByteTokenizer().Decode(train), ByteTokenizer().Decode(dataset->validation().Tokens())};
}

TEST(TokenizeTest, HoldsOutTheEndOfTheText) {
  const std::string folder = TemporaryFolder();
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  WriteBytes(JoinPath(folder, "1"), text.substr(0, 300));
  WriteBytes(JoinPath(folder, "2"), Gzip(text.substr(300, 300)));
  WriteBytes(JoinPath(folder, "3"), Zstd(text.substr(600)));
  uint64_t last = 0, total = 0;
  const auto made = Make({.inputs = {JoinPath(folder, "1"), JoinPath(folder, "2"), JoinPath(folder, "3")},
                          .folder = JoinPath(folder, "out")},
                         {.read =
                              [&](uint64_t done, uint64_t of) {
                                EXPECT_GE(done, last);
                                last = done;
                                total = of;
                              },
                          .write = {},
                          .notice = {}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(last, total);  // in bytes of the files as they are
  EXPECT_EQ(made->documents, 3u);
  const auto [train, held_out] = Texts(JoinPath(folder, "out"));
  EXPECT_EQ(train, text.substr(0, 950));
  EXPECT_EQ(held_out, text.substr(950));
  EXPECT_THAT(*ListDir(JoinPath(folder, "out")), ElementsAre("meta.json", "train_000.bin", "val.bin"));
  EXPECT_THAT(*ListDir(folder), ElementsAre("1", "2", "3", "out"));
}

TEST(TokenizeTest, JsonLinesAreDocuments) {
  const std::string folder = TemporaryFolder(), file = JoinPath(folder, "a.jsonl");
  WriteBytes(
      file, "{\"text\": \"one\\u00e9\", \"id\": 1}\n\n{\"text\": \"\"}\r\n{\"id\": 2, \"text\": \"two\\n\"}");
  const auto made = Make({.inputs = {file},
                          .folder = JoinPath(folder, "out"),
                          .format = TextFormat::kJsonLines,
                          .field = "text"});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->documents, 2u) << "one has no text";
  const auto [train, held_out] = Texts(JoinPath(folder, "out"));
  EXPECT_EQ(train + held_out, "one\u00e9\ntwo\n") << "bytes have no end of text";
}

TEST(TokenizeTest, DocumentsEndWithTheEndOfTextInPiecesOfAnySize) {
  const std::string folder = TemporaryFolder();
  // Tokens beyond the bytes, so that a wrong cut shows. tokenizer.json names the token that ends a document.
  std::string vocab = "{", separator;
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    static int shifted = 0;
    const int point = plain ? byte : 256 + shifted++;
    std::string text;
    if (point == '"' || point == '\\') text += '\\';
    if (point < 128) {
      text += static_cast<char>(point);
    } else {
      text += static_cast<char>(0xc0 | point >> 6);
      text += static_cast<char>(0x80 | (point & 63));
    }
    absl::StrAppend(&vocab, separator, "\"", text, "\": ", byte);
    separator = ", ";
  }
  absl::StrAppend(&vocab, R"(, "th": 256, "the": 257, "<|endoftext|>": 258})");
  WriteBytes(JoinPath(folder, "vocab.json"), vocab);
  WriteBytes(JoinPath(folder, "merges.txt"), "#version: 0.2\nt h\nth e\n");
  const auto tokenizer = MakeFileTokenizer(JoinPath(folder, "vocab.json"), "gpt2");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ASSERT_EQ((*tokenizer)->end_of_text(), 258u);
  std::string text;
  while (text.size() < 3'000'000) text += text.size() % 7 == 0 ? "the the\n" : " the\nthe\n\n";
  WriteBytes(JoinPath(folder, "1.text"), text);
  WriteBytes(JoinPath(folder, "2.text"), "");
  WriteBytes(JoinPath(folder, "3.text"), "the end");
  const SystemClock clock{};
  const auto made = Tokenize(
      **tokenizer, {.inputs = {JoinPath(folder, "*.text")}, .folder = JoinPath(folder, "out"), .threads = 3},
      clock, {});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->documents, 2u);
  EXPECT_EQ(made->description.end_of_text, 258u);
  const auto dataset = Dataset::Open(JoinPath(folder, "out"), {259, 4, made->description.tokenizer});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<TokenId> all(dataset->train_tokens()), expected, second;
  ASSERT_TRUE(dataset->ReadTrain(0, all).ok());
  const std::vector<TokenId> held_out = dataset->validation().Tokens();
  all.insert(all.end(), held_out.begin(), held_out.end());
  (*tokenizer)->Encode(text, expected);
  expected.push_back(258);
  (*tokenizer)->Encode("the end", second);
  expected.insert(expected.end(), second.begin(), second.end());
  expected.push_back(258);
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
  const auto made = Make({.inputs = {"-", JoinPath(folder, "1")}, .folder = JoinPath(folder, "out")},
                         {.read =
                              [&](uint64_t done, uint64_t of) {
                                last = done;
                                total = of;
                              },
                          .write = {},
                          .notice = {}});
  ASSERT_EQ(::dup2(stdin_before, STDIN_FILENO), STDIN_FILENO);
  ::close(stdin_before);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(last, 1300u);
  EXPECT_EQ(total, 0u) << "not known";
}

TEST(TokenizeTest, HoldsOutByHashWhateverTheOrderAndTheSeed) {
  const std::string folder = TemporaryFolder();
  std::string lines, reversed;
  for (int i = 0; i < 400; ++i) {
    const std::string line = absl::StrCat("{\"text\": \"document ", i, "\"}\n");
    lines += line;
    reversed.insert(0, line);
  }
  WriteBytes(JoinPath(folder, "a"), lines);
  WriteBytes(JoinPath(folder, "b"), reversed);
  std::vector<std::vector<std::string>> held_out, trained;
  const auto documents = [](const std::string& text) {
    std::vector<std::string> found;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      found.push_back(text.substr(at, end - at));
    }
    return found;
  };
  for (const auto& [file, seed] : {std::pair<std::string, std::optional<uint64_t>>{"a", std::nullopt},
                                   {"b", std::nullopt},
                                   {"a", 1},
                                   {"a", 2}}) {
    const std::string out = JoinPath(folder, absl::StrCat("out", held_out.size()));
    const auto made = Make({.inputs = {JoinPath(folder, file)},
                            .folder = out,
                            .format = TextFormat::kJsonLines,
                            .field = "text",
                            .validation = {.by = By::kHash, .share = 0.1, .files = {}},
                            .shuffle_seed = seed});
    ASSERT_TRUE(made.ok()) << made.status();
    const auto [train, held] = Texts(out);
    trained.push_back(documents(train));
    held_out.push_back(documents(held));
    EXPECT_EQ(trained.back().size() + held_out.back().size(), 400u);
  }
  EXPECT_GT(held_out[0].size(), 15u);
  EXPECT_LT(held_out[0].size(), 80u);
  EXPECT_EQ(trained[0].front(), "document 0") << "in their order";
  EXPECT_NE(trained[2], trained[0]) << "shuffled";
  EXPECT_NE(trained[3], trained[2]) << "by the seed";
  for (int i = 1; i < 4; ++i) {
    EXPECT_THAT(held_out[i], ::testing::UnorderedElementsAreArray(held_out[0]));
    EXPECT_THAT(trained[i], ::testing::UnorderedElementsAreArray(trained[0]));
  }
}

TEST(TokenizeTest, HoldsOutFiles) {
  const std::string folder = TemporaryFolder();
  ASSERT_TRUE(CreateDirs(JoinPath(folder, "in/deep")).ok());
  WriteBytes(JoinPath(folder, "in/a"), "aaaa");
  WriteBytes(JoinPath(folder, "in/b"), "bbbb");
  WriteBytes(JoinPath(folder, "in/deep/c"), "cccc");
  WriteBytes(JoinPath(folder, "in/.hidden"), "dddd");
  TokenizeOptions options = {.inputs = {JoinPath(folder, "in")},
                             .folder = JoinPath(folder, "out"),
                             .validation = {.by = By::kFiles, .files = {JoinPath(folder, "in/b")}},
                             .tokens_per_file = 3};
  ASSERT_TRUE(Make(options).ok());
  const auto [train, held_out] = Texts(options.folder);
  EXPECT_EQ(train, "aaaacccc");
  EXPECT_EQ(held_out, "bbbb");
  EXPECT_THAT(*ListDir(options.folder),
              ElementsAre("meta.json", "train_000.bin", "train_001.bin", "train_002.bin", "val.bin"));
  options.validation.files = {JoinPath(folder, "in")};
  options.folder = JoinPath(folder, "out2");
  EXPECT_THAT(Message(options), HasSubstr("all files are held out"));
}

TEST(TokenizeTest, NamesBadLinesAndLeavesThemOutOnRequest) {
  const std::string folder = TemporaryFolder(), file = JoinPath(folder, "a.jsonl");
  WriteBytes(
      file,
      "{\"text\": \"good 1\"}\n{\"text\": \"cut\n[1]\n{\"txt\": \"x\"}\n{\"text\": 7}\n{\"text\": \"\xff\"}\n"
      "{\"text\": \"good 2\"}\n");
  TokenizeOptions options = {
      .inputs = {file}, .folder = JoinPath(folder, "out"), .format = TextFormat::kJsonLines, .field = "text"};
  EXPECT_THAT(Message(options), AllOf(HasSubstr(file + ", line 2: not JSON"), HasSubstr("--skip-bad-lines")));
  EXPECT_FALSE(FileExists(options.folder));
  EXPECT_FALSE(FileExists(options.folder + ".partial"));
  options.skip_bad_lines = true;
  const auto made = Make(options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->skipped_lines, 5u);
  const auto [train, held_out] = Texts(options.folder);
  EXPECT_EQ(train + held_out, "good 1\ngood 2\n");
  EXPECT_THAT(*ReadFile(JoinPath(options.folder, kSkippedLines)),
              AllOf(HasSubstr(file + "\t2\tnot JSON"), HasSubstr("\t3\tnot a JSON object but an array\n"),
                    HasSubstr("\t4\tno field 'text'\n"),
                    HasSubstr("\t5\tthe field 'text' is a number, not a string\n"),
                    HasSubstr("\t6\tinvalid UTF-8\n")));
}

TEST(TokenizeTest, BytesTakesTextOfAnyEncoding) {
  const std::string folder = TemporaryFolder(), file = JoinPath(folder, "latin1");
  const std::string text = "first line\nthe stock market\x92s drop, caf\xe9\nlast line\n";
  WriteBytes(file, text);
  const auto made = Make({.inputs = {file}, .folder = JoinPath(folder, "out")});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->skipped_lines, 0u);
  const auto [train, held_out] = Texts(JoinPath(folder, "out"));
  EXPECT_EQ(train + held_out, text);
}

TEST(TokenizeTest, RejectsWhatItCannotDo) {
  const std::string folder = TemporaryFolder();
  const std::string file = JoinPath(folder, "text"), out = JoinPath(folder, "new/out");
  WriteBytes(file, "ab");
  EXPECT_THAT(Message({.inputs = {file}, .folder = out}), HasSubstr("2 tokens: too few"));
  EXPECT_THAT(Message({.inputs = {"/nowhere"}, .folder = out}), HasSubstr("/nowhere"));
  EXPECT_THAT(Message({.inputs = {}, .folder = out}), HasSubstr("no text file"));
  EXPECT_THAT(Message({.inputs = {file, folder + "/./text"}, .folder = out}), HasSubstr("named twice"));
  EXPECT_THAT(Message({.inputs = {file}, .folder = out, .validation = {.share = 1, .files = {}}}),
              HasSubstr("below 1"));
  EXPECT_THAT(
      Message({.inputs = {file}, .folder = out, .validation = {.by = By::kHash, .share = 1e-9, .files = {}}}),
      AllOf(HasSubstr("no text is held out"), HasSubstr("share:")));
  EXPECT_FALSE(FileExists(JoinPath(folder, "new"))) << "what a failed call made is gone";
  WriteBytes(JoinPath(folder, "meta.json"), "{}");
  EXPECT_THAT(Message({.inputs = {file}, .folder = folder}), HasSubstr("already holds a dataset"));
}

TEST(TokenizeTest, WritesIntoNoFolderOfOtherFiles) {
  const std::string folder = TemporaryFolder(), text = JoinPath(folder, "text");
  WriteBytes(text, std::string(1000, 'a'));
  const absl::Status rejected = Make({.inputs = {text}, .folder = folder}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()),
              AllOf(HasSubstr("holds other files (text)"), HasSubstr(folder + "/tokens")));
  EXPECT_THAT(*ListDir(folder), ElementsAre("text"));
  // An empty folder is nobody's.
  const std::string out = JoinPath(folder, "out");
  ASSERT_TRUE(CreateDirs(out).ok());
  EXPECT_TRUE(Make({.inputs = {text}, .folder = out}).ok());
}

TEST(TokenizeTest, TwoCallsNeverWriteOneFolder) {
  const std::string folder = TemporaryFolder();
  const std::string first = JoinPath(folder, "first"), second = JoinPath(folder, "second");
  const std::string out = JoinPath(folder, "out");
  WriteBytes(first, std::string(1000, 'a'));
  WriteBytes(second, std::string(500, 'b'));
  absl::Status rejected;
  const auto made = Make(
      {.inputs = {first}, .folder = out},
      {.read = [&](uint64_t, uint64_t) { rejected = Make({.inputs = {second}, .folder = out}).status(); },
       .write = {},
       .notice = {}});
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("another process is writing " + out));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Texts(out).first, std::string(950, 'a'));
}

TEST(TokenizeTest, ContinuesAfterAFailureBehindTheLastInput) {
  const std::string folder = TemporaryFolder();
  TokenizeOptions options = {.inputs = {}, .folder = JoinPath(folder, "out"), .skip_bad_lines = true};
  for (const char c : {'a', 'b', 'c'}) {
    const std::string file = JoinPath(folder, std::string(1, c));
    WriteBytes(file, std::string(100, c) + (c == 'a' ? std::string("\n\0\n", 3) : ""));
    options.inputs.push_back(file);
  }
  const std::string good = Gzip(std::string(1000, 'c'));
  WriteBytes(options.inputs[2], good.substr(0, good.size() / 2));
  const absl::Status failed = Make(options).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr(options.inputs[2] + ": the gzip data is cut short"),
                    HasSubstr("of 3 input(s) are done; the same command continues")));
  EXPECT_FALSE(FileExists(options.folder));
  WriteBytes(options.inputs[2], good);
  std::string notice;
  const auto made =
      Make(options, {.read = {}, .write = {}, .notice = [&](const std::string& line) { notice = line; }});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(notice, HasSubstr("continuing in " + options.folder + ".partial"));
  EXPECT_EQ(made->skipped_lines, 1u) << "counted before the failure";
  EXPECT_THAT(*ListDir(options.folder),
              ElementsAre("meta.json", "skipped_lines.txt", "train_000.bin", "val.bin"));
  const auto [train, held_out] = Texts(options.folder);
  EXPECT_EQ(train + held_out, std::string(100, 'a') + "\n" + std::string(100, 'b') + std::string(1000, 'c'));
}

TEST(TokenizeTest, StartsAgainWhenTheJobIsAnother) {
  const std::string folder = TemporaryFolder();
  const std::string a = JoinPath(folder, "a"), b = JoinPath(folder, "b");
  WriteBytes(a, std::string(100, 'a'));
  WriteBytes(b, std::string("\0", 1));
  TokenizeOptions options = {.inputs = {a, b}, .folder = JoinPath(folder, "out"), .shuffle_seed = 1};
  EXPECT_THAT(Message(options), HasSubstr("a NUL byte"));
  EXPECT_TRUE(FileExists(options.folder + ".partial"));
  WriteBytes(a, std::string(50, 'x'));
  WriteBytes(b, std::string(50, 'b'));
  options.shuffle_seed.reset();
  std::string notice;
  const auto made =
      Make(options, {.read = {}, .write = {}, .notice = [&](const std::string& line) { notice = line; }});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(notice, HasSubstr("starting again"));
  EXPECT_THAT(*ListDir(options.folder), ElementsAre("meta.json", "train_000.bin", "val.bin"));
  const auto [train, held_out] = Texts(options.folder);
  EXPECT_EQ(train + held_out, std::string(50, 'x') + std::string(50, 'b'));
}

}  // namespace
}  // namespace atl
