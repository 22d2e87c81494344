#include "common/partial_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Write(const std::string& folder, const std::string& name) {
  EXPECT_TRUE(WriteFileAtomically(JoinPath(folder, name), name).ok());
}

TEST(PartialFolderTest, AppearsWithAllOfItsFiles) {
  const TestDir dir;
  {
    const auto folder = PartialFolder::Create(dir.File("out/"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ((*folder)->partial(), dir.File("out.partial"));
    Write((*folder)->partial(), "a");
    EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("out.partial"));
    ASSERT_TRUE((*folder)->Publish().ok());
  }
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("out"));
  EXPECT_THAT(ListDir(dir.File("out")).value(), ElementsAre("a"));
}

TEST(PartialFolderTest, NothingIsLeftWithoutPublication) {
  const TestDir dir;
  {
    const auto folder = PartialFolder::Create(dir.File("out"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    Write((*folder)->partial(), "a");
  }
  EXPECT_THAT(ListDir(dir.path()).value(), IsEmpty());
}

TEST(PartialFolderTest, ContinuesWhatWasKept) {
  const TestDir dir;
  {
    const auto folder = PartialFolder::Create(dir.File("out"), PartialFolder::LeftOver::kContinue);
    ASSERT_TRUE(folder.ok()) << folder.status();
    Write((*folder)->partial(), "a");
    (*folder)->Keep();
  }
  {
    const auto folder = PartialFolder::Create(dir.File("out"), PartialFolder::LeftOver::kContinue);
    ASSERT_TRUE(folder.ok()) << folder.status();
    Write((*folder)->partial(), "b");
    ASSERT_TRUE((*folder)->Publish().ok());
  }
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("out"));
  EXPECT_THAT(ListDir(dir.File("out")).value(), ElementsAre("a", "b"));
}

TEST(PartialFolderTest, TakesAnEmptyFolderAndTheEndOfALink) {
  const TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("out")).ok());
  std::filesystem::create_symlink("out", dir.File("link"));
  const auto folder = PartialFolder::Create(dir.File("link"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  Write((*folder)->partial(), "a");
  ASSERT_TRUE((*folder)->Publish().ok());
  EXPECT_THAT(ListDir(dir.File("out")).value(), ElementsAre("a"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir.File("link")));
}

TEST(PartialFolderTest, ReplacesNothing) {
  const TestDir dir;
  Write(dir.path(), "file");
  ASSERT_TRUE(CreateDirs(dir.File("full")).ok());
  Write(dir.File("full"), "a");
  const auto file = PartialFolder::Create(dir.File("file"));
  EXPECT_TRUE(absl::IsFailedPrecondition(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("file is not a folder"));
  const auto full = PartialFolder::Create(dir.File("full"));
  EXPECT_TRUE(absl::IsFailedPrecondition(full.status()));
  EXPECT_THAT(std::string(full.status().message()), HasSubstr("full is a folder with files"));
  EXPECT_TRUE(absl::IsNotFound(PartialFolder::Create(dir.File("absent/out")).status()));
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("file", "full"));
}

TEST(PartialFolderTest, AFolderThatAppearsMeanwhileStays) {
  const TestDir dir;
  {
    const auto folder = PartialFolder::Create(dir.File("out"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(CreateDirs(dir.File("out")).ok());
    Write(dir.File("out"), "theirs");
    EXPECT_FALSE((*folder)->Publish().ok());
  }
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("out"));
  EXPECT_THAT(ListDir(dir.File("out")).value(), ElementsAre("theirs"));
}

TEST(PartialFolderTest, OneWriterAtATime) {
  const TestDir dir;
  const auto first = PartialFolder::Create(dir.File("out"));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = PartialFolder::Create(dir.File("out"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process is writing"));
  EXPECT_TRUE(FileExists(dir.File("out.partial")));
}

TEST(PartialFolderTest, WhatAKilledProcessLeftIsRemovedAndNothingElse) {
  const TestDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto folder = PartialFolder::Create(dir.File("out"));
    if (!folder.ok()) ::_exit(1);
    Write((*folder)->partial(), "half");
    ::_exit(0);  // runs no destructor
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(FileExists(dir.File("out.partial/half")));
  {
    const auto folder = PartialFolder::Create(dir.File("out"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_FALSE(FileExists(dir.File("out.partial/half")));
  }
  ASSERT_TRUE(CreateDirs(dir.File("out.partial")).ok());
  Write(dir.File("out.partial"), "precious");
  const auto folder = PartialFolder::Create(dir.File("out"));
  EXPECT_THAT(std::string(folder.status().message()), HasSubstr("out.partial is in the way"));
  EXPECT_TRUE(FileExists(dir.File("out.partial/precious")));
}

}  // namespace
}  // namespace atl
