#include "worker/data/input/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/file.h"
#include "tests/worker/data/input/compressed.h"
#include "tests/worker/data/temporary_folder.h"

namespace atl {
namespace {

using testing::Gzip;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::WriteBytes;
using testing::Zstd;

absl::StatusOr<std::string> ReadAll(const std::string& bytes, size_t piece = 1000) {
  const std::string file = JoinPath(TemporaryFolder(), "file");
  WriteBytes(file, bytes);
  auto source = TextSource::Open(file);
  if (!source.ok()) return source.status();
  std::string text;
  for (size_t before = 0;; before = text.size()) {
    const absl::Status read = source->Read(piece, text);
    if (!read.ok()) return read;
    EXPECT_LE(text.size() - before, piece);
    if (text.size() == before) break;
  }
  EXPECT_EQ(source->position(), bytes.size());
  return text;
}

std::string SomeText(size_t bytes) {
  std::string text;
  for (uint32_t i = 0, x = 1; text.size() < bytes; ++i)
    text += static_cast<char>('a' + ((x = x * 1664525 + 1013904223) >> 27));
  return text;
}

TEST(TextSourceTest, TellsCompressionByContent) {
  const std::string text = SomeText(700'000);
  EXPECT_EQ(*ReadAll(text), text);
  EXPECT_EQ(*ReadAll(Gzip(text)), text);
  EXPECT_EQ(*ReadAll(Zstd(text)), text);
  EXPECT_EQ(*ReadAll(Zstd(text, 28)), text) << "zstd --long=28";
  for (const std::string& short_text :
       {std::string(), std::string("a"), std::string("\x1f"), std::string("abc")}) {
    EXPECT_EQ(*ReadAll(short_text), short_text);
    EXPECT_EQ(*ReadAll(Gzip(short_text)), short_text);
    EXPECT_EQ(*ReadAll(Zstd(short_text)), short_text);
  }
}

TEST(TextSourceTest, ReadsMembersAndFramesOneAfterTheOther) {
  EXPECT_EQ(*ReadAll(Gzip("one ") + Gzip("") + Gzip("two"), 2), "one two");
  EXPECT_EQ(*ReadAll(Zstd("one ") + Zstd("") + Zstd("two"), 2), "one two");
  const std::string skipped("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  EXPECT_EQ(*ReadAll(skipped + Zstd("text")), "text");
  EXPECT_EQ(*ReadAll(Gzip("padded") + std::string(5000, '\0')), "padded");
}

TEST(TextSourceTest, NamesDamagedFiles) {
  const std::string text = SomeText(400'000);
  for (const auto& [packed, name] : {std::pair(Gzip(text), "gzip"), std::pair(Zstd(text), "zstd")}) {
    for (const size_t size : {size_t{5}, packed.size() / 2, packed.size() - 1}) {
      const absl::Status cut = ReadAll(packed.substr(0, size)).status();
      EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << name << " " << size;
      EXPECT_THAT(std::string(cut.message()), HasSubstr("data is cut short; copy the file again"));
    }
    std::string damaged = packed;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
    damaged[damaged.size() / 2 + 9] = static_cast<char>(damaged[damaged.size() / 2 + 9] ^ 0x55);
    EXPECT_EQ(ReadAll(damaged).status().code(), absl::StatusCode::kDataLoss) << name;
    EXPECT_EQ(ReadAll(packed + "tail").status().code(), absl::StatusCode::kDataLoss) << name;
  }
  EXPECT_EQ(ReadAll(Gzip("padded") + std::string(10, '\0') + "x").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(TextSourceTest, NoticesAFileThatChangesWhileItIsRead) {
  const std::string file = JoinPath(TemporaryFolder(), "text");
  WriteBytes(file, std::string(size_t{1} << 20, 'a'));
  auto source = TextSource::Open(file);
  ASSERT_TRUE(source.ok()) << source.status();
  std::string text;
  ASSERT_TRUE(source->Read(100, text).ok());
  ASSERT_EQ(::truncate(file.c_str(), 1 << 19), 0);
  absl::Status status;
  for (size_t before = 0; status.ok() && text.size() != before;) {
    before = text.size();
    status = source->Read(size_t{1} << 18, text);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << text.size();
  EXPECT_THAT(std::string(status.message()), HasSubstr(file + ": another program changed it"));
}

TEST(TextSourceTest, RejectsFoldersAndDevices) {
  EXPECT_THAT(std::string(TextSource::Open(TemporaryFolder()).status().message()), HasSubstr("is a folder"));
  EXPECT_THAT(std::string(TextSource::Open("/dev/zero").status().message()), HasSubstr("is a device"));
  EXPECT_EQ(TextSource::Open("/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atl
