#include "common/mapped_file.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

std::string Text(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.size());
}

TEST(MappedFileTest, ShowsTheBytes) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("a"), "hello").ok());
  auto file = MappedFile::Open(dir.File("a"), AccessPattern::kRandom);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Text(*file), "hello");
  EXPECT_EQ(file->path(), dir.File("a"));
}

TEST(MappedFileTest, MovesOwnership) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("a"), "hello").ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("b"), "other").ok());
  auto a = MappedFile::Open(dir.File("a"));
  auto b = MappedFile::Open(dir.File("b"));
  ASSERT_TRUE(a.ok() && b.ok());
  MappedFile moved = *std::move(a);
  EXPECT_EQ(Text(moved), "hello");
  moved = *std::move(b);
  EXPECT_EQ(Text(moved), "other");
}

TEST(MappedFileTest, EmptyFile) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("empty"), "").ok());
  const auto file = MappedFile::Open(dir.File("empty"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 0u);
}

TEST(MappedFileTest, Errors) {
  TestDir dir;
  EXPECT_EQ(MappedFile::Open(dir.File("none")).status().code(), absl::StatusCode::kNotFound);
  const absl::Status folder = MappedFile::Open(dir.path()).status();
  EXPECT_EQ(std::string(folder.message()), "open " + dir.path() + ": Is a directory");
}

}  // namespace
}  // namespace atl
