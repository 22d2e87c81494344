#include "worker/data/input/text_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "common/file.h"
#include "tests/worker/data/input/compressed.h"
#include "tests/worker/data/temporary_folder.h"

namespace atl {
namespace {

using ::testing::AllOf;
using testing::Gzip;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::WriteBytes;

/// Behind a line end before a letter.
size_t LastCut(std::string_view text) {
  for (size_t cut = text.size(); cut-- > 1;) {
    if (text[cut - 1] == '\n' && text[cut] >= 'a' && text[cut] <= 'z') return cut;
  }
  return 0;
}

struct Read {
  std::string text = {};
  size_t batches = 0;
  std::vector<BadLine> bad_lines = {};
  uint64_t hash = 0;
  bool ended = false;
  absl::Status status = {};
};

Read ReadText(const std::string& bytes, const TextReaderOptions& options) {
  const std::string file = JoinPath(TemporaryFolder(), "file");
  WriteBytes(file, bytes);
  Read read;
  auto reader = OpenPlainText({.path = file}, options);
  if (!reader.ok()) return {.status = reader.status()};
  TextBatch batch;
  while (true) {
    const absl::StatusOr<bool> more = (*reader)->Next(batch);
    if (!more.ok()) read.status = more.status();
    if (!more.ok() || !*more) return read;
    EXPECT_FALSE(read.ended) << "the document ended before its last batch";
    read.text += batch.text.substr(0, batch.end);
    read.bad_lines.insert(read.bad_lines.end(), batch.bad_lines.begin(), batch.bad_lines.end());
    read.ended = batch.ends_document;
    read.hash = batch.hash;
    ++read.batches;
  }
}

std::string Fault(const std::string& bytes, bool any_text = false) {
  return std::string(ReadText(bytes, {.last_cut = LastCut, .any_text = any_text}).status.message());
}

TEST(PlainTextTest, ComesInBatchesThatAreOneDocument) {
  std::string text;
  while (text.size() < 5'000'000) absl::StrAppend(&text, text.size(), " caf\u00e9\n \nline\n");
  const Read read = ReadText(text, {.last_cut = LastCut, .hash_documents = true});
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.text, text);
  EXPECT_GE(read.batches, 4u);
  EXPECT_TRUE(read.ended);
  EXPECT_EQ(read.hash, DocumentHash(text));
  EXPECT_EQ(absl::StrCat(absl::Hex(read.hash, absl::kZeroPad16)), Sha256Hex(text).substr(0, 16));
}

TEST(PlainTextTest, TextWithoutAPlaceToCutIsCutBetweenCharacters) {
  std::string text = "x";
  while (text.size() < 40'000'000) text += "\u20ac";
  const Read read = ReadText(text, {.last_cut = LastCut});
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.text, text);
  EXPECT_EQ(read.batches, 3u);
}

TEST(PlainTextTest, EmptyFilesHaveNoDocument) {
  EXPECT_EQ(ReadText("", {.last_cut = LastCut}).batches, 0u);
  const Read bad = ReadText("\xff\n", {.last_cut = LastCut, .skip_bad_lines = true});
  EXPECT_EQ(bad.bad_lines.size(), 1u);
  EXPECT_FALSE(bad.ended);
}

TEST(PlainTextTest, NamesTheLineThatIsNoText) {
  EXPECT_THAT(Fault("one\ntwo \xff\n"),
              AllOf(HasSubstr("line 2: invalid UTF-8"), HasSubstr("--skip-bad-lines")));
  EXPECT_THAT(Fault("one\n\xed\xa0\x80"), HasSubstr("line 2: invalid UTF-8")) << "a surrogate";
  EXPECT_THAT(Fault(std::string("one\ntwo\nthr\0ee", 14)), HasSubstr("line 3: a NUL byte"));
  std::string text;
  while (text.size() < 3'000'000) text += "line\n";
  EXPECT_THAT(Fault(text + "\xff\n"), HasSubstr(absl::StrCat("line ", text.size() / 5 + 1, ":")));
}

TEST(PlainTextTest, AnyEncodingStillMeansText) {
  const TextReaderOptions any = {.last_cut = LastCut, .any_encoding = true};
  EXPECT_EQ(ReadText("one\ntwo \xff\n", any).text, "one\ntwo \xff\n");
  EXPECT_THAT(std::string(ReadText(std::string("one\n\0\n", 6), any).status.message()),
              HasSubstr("line 2: a NUL byte"));
}

TEST(PlainTextTest, LeavesOutBadLinesOnRequest) {
  std::string text, good;
  for (int i = 1; i <= 300'000; ++i) {
    const std::string line = absl::StrCat("line ", i, "\n");
    good += i % 100'000 == 0 ? "" : line;
    text += i % 100'000 == 0 ? "bad \xff\n" : line;
  }
  const Read read = ReadText(text, {.last_cut = LastCut, .skip_bad_lines = true, .hash_documents = true});
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.text, good);
  EXPECT_EQ(read.hash, DocumentHash(good));
  ASSERT_EQ(read.bad_lines.size(), 3u);
  EXPECT_EQ(read.bad_lines[1].line, 200'000u);
}

TEST(PlainTextTest, RejectsKnownBinaryFormatsByName) {
  EXPECT_THAT(Fault("PK\x03\x04..."), HasSubstr("is a zip archive, not text; unpack it"));
  EXPECT_THAT(Fault("PAR1..."), AllOf(HasSubstr("is a Parquet file"), HasSubstr("JSON lines")));
  EXPECT_THAT(Fault(std::string("\x88\xd8\x34\x01\1\0\0\0", 8)), HasSubstr("atoll-data adopt"));
  EXPECT_THAT(Fault("\xff\xfe"
                    "a"),
              HasSubstr("UTF-16"));
  EXPECT_THAT(Fault(Gzip("%PDF-1.4")), HasSubstr("is a PDF document")) << "also when it is compressed";
}

TEST(PlainTextTest, JsonLinesAreNotTakenForText) {
  const std::string lines = "{\"id\": 1, \"content\": \"a\", \"url\": \"b\"}\n{}\n";
  EXPECT_THAT(Fault(lines), AllOf(HasSubstr("'content', 'url'"), HasSubstr("--field content")));
  EXPECT_EQ(Fault(lines, true), "");
  EXPECT_EQ(Fault("{ braces, but no JSON }\n"), "");
  EXPECT_EQ(Fault("{\"number\": 1}\n"), "") << "no string to train on";
}

TEST(PlainTextTest, NamesTheLineWhereCompressedDataEnds) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) absl::StrAppend(&text, "line ", i % 977, "\n");
  const std::string packed = Gzip(text);
  const std::string fault = Fault(packed.substr(0, packed.size() / 2));
  EXPECT_THAT(fault, AllOf(HasSubstr("the gzip data is cut short"), HasSubstr("(after line ")));
}

TEST(JsonLinesTest, BatchesAreWholeLines) {
  std::string text = "\xef\xbb\xbf";
  for (int i = 0; i < 200'000; ++i) absl::StrAppend(&text, "{\"text\": \"", i, "\"}\n");
  const std::string file = JoinPath(TemporaryFolder(), "file");
  WriteBytes(file, text + "last");
  const auto reader = OpenJsonLines({.path = file});
  ASSERT_TRUE(reader.ok());
  std::string all;
  uint64_t lines = 0;
  TextBatch batch;
  while (*(*reader)->Next(batch)) {
    EXPECT_EQ(batch.first_line, lines + 1);
    lines += static_cast<uint64_t>(std::count(batch.text.begin(), batch.text.end(), '\n'));
    EXPECT_EQ(batch.end, batch.text.size());
    all += batch.text;
    if (all.size() + 3 < text.size()) {
      EXPECT_EQ(batch.text.back(), '\n');
    }
  }
  EXPECT_EQ(all, text.substr(3) + "last") << "without the byte order mark";
}

}  // namespace
}  // namespace atl
