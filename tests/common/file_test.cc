#include "common/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atoll {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FileTest, JoinPath) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(FileTest, WritesAndReadsBack) {
  TestDir dir;
  const std::string path = dir.File("a");
  const std::string contents(200'000, 'x');
  ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
  EXPECT_EQ(*ReadFile(path), contents);
  EXPECT_EQ(*FileSize(path), contents.size());
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("a"));  // no temporary file stays
}

TEST(FileTest, AtomicWriteSetsTheMode) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("secret"), "x", 0600).ok());
  struct stat info;
  ASSERT_EQ(::stat(dir.File("secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST(FileTest, FailedWriteKeepsTheOldFileAndLeavesNothingBehind) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("folder/full")).ok());
  const absl::Status status = WriteFileAtomically(dir.File("folder"), "x");  // rename onto a folder
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir.File("folder")));
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("folder"));
}

TEST(FileTest, ReadErrorsNameTheFile) {
  TestDir dir;
  const auto missing = ReadFile(dir.File("missing"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(missing.status().message()),
            "open " + dir.File("missing") + ": No such file or directory");
  ASSERT_TRUE(WriteFileAtomically(dir.File("big"), "12345").ok());
  EXPECT_EQ(*ReadFile(dir.File("big"), 5), "12345");
  EXPECT_EQ(ReadFile(dir.File("big"), 4).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(FileTest, CreateDirsIsIdempotentAndRefusesAFileInTheWay) {
  TestDir dir;
  EXPECT_TRUE(CreateDirs(dir.File("a/b/c")).ok());
  EXPECT_TRUE(CreateDirs(dir.File("a/b/c/")).ok());
  EXPECT_TRUE(FileExists(dir.File("a/b/c")));
  ASSERT_TRUE(WriteFileAtomically(dir.File("a/file"), "x").ok());
  const absl::Status status = CreateDirs(dir.File("a/file/d"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a file of that name is in the way"));
}

TEST(FileTest, ListsSortedAndRemoves) {
  TestDir dir;
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(WriteFileAtomically(dir.File(name), "x").ok());
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(RemoveFile(dir.File("b")).ok());
  EXPECT_TRUE(RemoveFile(dir.File("b")).ok());
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("a", "c"));
  EXPECT_EQ(ListDir(dir.File("nowhere")).status().code(), absl::StatusCode::kNotFound);
}

TEST(FileTest, RemoveAllDoesNotFollowLinks) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("victim")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("victim/precious"), "x").ok());
  ASSERT_TRUE(CreateDirs(dir.File("tree/deep")).ok());
  ASSERT_EQ(::symlink(dir.File("victim").c_str(), dir.File("tree/link").c_str()), 0);
  EXPECT_TRUE(RemoveAll(dir.File("tree")).ok());
  EXPECT_TRUE(RemoveAll(dir.File("tree")).ok());
  EXPECT_FALSE(FileExists(dir.File("tree")));
  EXPECT_TRUE(FileExists(dir.File("victim/precious")));
}

TEST(FileTest, FreeBytes) {
  EXPECT_GT(*FreeBytes("/tmp"), 0u);
  EXPECT_EQ(FreeBytes("/nowhere/at/all").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atoll
