// Files in memory behind common/file.h: what a power cut leaves of them.

#include "simulate/memory_files.h"

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

bool Always() { return true; }
bool Never() { return false; }

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class MemoryFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { ClearMemoryFiles(); }

  static DurableFile Create(const std::string& path, std::string_view text) {
    auto file = DurableFile::Open(path, OpenMode::kTruncate);
    EXPECT_TRUE(file->WriteAt(0, Bytes(text)).ok());
    return *std::move(file);
  }
  static std::string Read(const std::string& path) { return ReadFile(path).value_or("(none)"); }
};

TEST_F(MemoryFilesTest, NothingIsWrittenToTheMachine) {
  Create("/nowhere/file", "text");
  EXPECT_EQ(Read("/nowhere/file"), "text");
  EXPECT_TRUE(FileExists("/nowhere"));
  EXPECT_FALSE(FileExists("/usr"));
}

TEST_F(MemoryFilesTest, APowerCutTakesUnsyncedBytes) {
  DurableFile file = Create("/w/file", "old");
  ASSERT_TRUE(file.Sync().ok());
  ASSERT_TRUE(FsyncDir("/w").ok());
  ASSERT_TRUE(file.WriteAt(1, Bytes("xyz")).ok());
  EXPECT_EQ(Read("/w/file"), "oxyz");
  LoseUnsyncedFiles("/w", Never);
  EXPECT_EQ(Read("/w/file"), "oxyz");
  LoseUnsyncedFiles("/w", Always);
  EXPECT_EQ(Read("/w/file"), "old");
}

TEST_F(MemoryFilesTest, APowerCutTakesNamesOfAFolderThatWasNotSynced) {
  ASSERT_TRUE(Create("/w/a", "first").Sync().ok());
  ASSERT_TRUE(FsyncDir("/w").ok());
  ASSERT_TRUE(RenameFile("/w/a", "/w/b").ok());
  ASSERT_TRUE(Create("/w/c", "second").Sync().ok());
  EXPECT_THAT(ListDir("/w").value(), ElementsAre("b", "c"));
  LoseUnsyncedFiles("/w", Always);
  EXPECT_THAT(ListDir("/w").value(), ElementsAre("a"));
  EXPECT_EQ(Read("/w/a"), "first");
}

TEST_F(MemoryFilesTest, ARemovalIsUndoneUntilItsFolderIsSynced) {
  ASSERT_TRUE(WriteFileAtomically("/w/a", "text").ok());
  ASSERT_TRUE(RemoveFile("/w/a").ok());
  LoseUnsyncedFiles("/w", Always);
  EXPECT_EQ(Read("/w/a"), "text");
  ASSERT_TRUE(RemoveFile("/w/a").ok());
  ASSERT_TRUE(FsyncDir("/w").ok());
  LoseUnsyncedFiles("/w", Always);
  EXPECT_FALSE(FileExists("/w/a"));
}

TEST_F(MemoryFilesTest, AnAtomicallyWrittenFileSurvives) {
  ASSERT_TRUE(WriteFileAtomically("/w/a", "one").ok());
  LoseUnsyncedFiles("/w", Always);
  EXPECT_EQ(Read("/w/a"), "one");
  ASSERT_TRUE(WriteFileAtomically("/w/a", "two").ok());
  LoseUnsyncedFiles("/w", Always);
  EXPECT_EQ(Read("/w/a"), "two");
}

TEST_F(MemoryFilesTest, ACopyLosesWhatItsOriginalWouldLose) {
  ASSERT_TRUE(WriteFileAtomically("/w/1/a", "one").ok());
  Create("/w/1/b", "unsynced");
  CopyMemoryFolder("/w/1", "/w/kept");
  EXPECT_THAT(ListDir("/w/kept").value(), ElementsAre("a", "b"));
  LoseUnsyncedFiles("/w/kept", Always);
  EXPECT_THAT(ListDir("/w/kept").value(), ElementsAre("a"));
  // The original is untouched, and what is written to it later does not reach the copy.
  EXPECT_THAT(ListDir("/w/1").value(), ElementsAre("a", "b"));
  ASSERT_TRUE(WriteFileAtomically("/w/1/a", "two").ok());
  EXPECT_EQ(Read("/w/kept/a"), "one");
}

TEST_F(MemoryFilesTest, AFolderMovesWithAllThatIsInIt) {
  ASSERT_TRUE(WriteFileAtomically("/w/kept/a", "one").ok());
  ASSERT_TRUE(RenameFile("/w/kept", "/w/2").ok());
  EXPECT_FALSE(FileExists("/w/kept"));
  LoseUnsyncedFiles("/w/2", Always);
  EXPECT_EQ(Read("/w/2/a"), "one");
  ASSERT_TRUE(RemoveAll("/w").ok());
  EXPECT_FALSE(FileExists("/w/2"));
}

TEST_F(MemoryFilesTest, WhatIsMappedStaysWhenTheFileChanges) {
  DurableFile file = Create("/w/a", "one");
  const auto mapped = MappedFile::Open("/w/a");
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(file.WriteAt(0, Bytes("two")).ok());
  ASSERT_TRUE(RemoveFile("/w/a").ok());
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->size()), "one");
}

TEST_F(MemoryFilesTest, ErrorsAreThoseOfTheMachine) {
  EXPECT_TRUE(absl::IsNotFound(ReadFile("/w/a").status()));
  EXPECT_TRUE(absl::IsNotFound(DurableFile::Open("/w/a", OpenMode::kOpenExisting).status()));
  EXPECT_FALSE(FileExists("/w/a"));
  EXPECT_TRUE(absl::IsNotFound(RenameFile("/w/a", "/w/b")));
  EXPECT_TRUE(RemoveFile("/w/a").ok());
  DurableFile file = Create("/w/a", "one");
  std::byte four[4];
  EXPECT_TRUE(absl::IsOutOfRange(file.ReadAt(0, four)));
  EXPECT_TRUE(absl::IsAlreadyExists(DurableFile::Open("/w/a", OpenMode::kCreateNew).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadFile("/w/a", 2).status()));
}

}  // namespace
}  // namespace atl
