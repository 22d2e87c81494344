#include "common/partial_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PartialFileTest, TheOldFileStandsUntilTheNewOneIsPublished) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("m.csv"), "old").ok());
  {
    const auto given_up = PartialFile::Create(dir.File("m.csv"));
    ASSERT_TRUE(given_up.ok()) << given_up.status();
    EXPECT_EQ((*given_up)->partial(), dir.File("m.csv.partial"));
    EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("m.csv", "m.csv.partial"));
    EXPECT_EQ(ReadFile(dir.File("m.csv")).value(), "old");
  }
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("m.csv"));
  {
    const auto file = PartialFile::Create(dir.File("m.csv"), dir.File("other"));
    ASSERT_TRUE(file.ok()) << file.status();
    std::ofstream((*file)->partial()) << "new";
    EXPECT_TRUE((*file)->Publish().ok());
  }
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("m.csv"));
  EXPECT_EQ(ReadFile(dir.File("m.csv")).value(), "new");
}

TEST(PartialFileTest, NothingIsLeftWhenTheNameCannotBeTaken) {
  TestDir dir;
  {
    const auto file = PartialFile::Create(dir.File("name"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(CreateDirs(dir.File("name")).ok());
    EXPECT_FALSE((*file)->Publish().ok());
  }
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("name"));
  const auto folder = PartialFile::Create(dir.File("name"));
  EXPECT_TRUE(absl::IsFailedPrecondition(folder.status()));
  EXPECT_THAT(std::string(folder.status().message()), HasSubstr("is a folder"));
  EXPECT_THAT(ListDir(dir.File("name")).value(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(PartialFile::Create(dir.File("absent/m.csv")).status()));
}

TEST(PartialFileTest, OneWriterAtATime) {
  TestDir dir;
  {
    const auto first = PartialFile::Create(dir.File("m.csv"));
    ASSERT_TRUE(first.ok()) << first.status();
    std::ofstream((*first)->partial()) << "first";
    const auto second = PartialFile::Create(dir.File("m.csv"));
    EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process is writing"));
    EXPECT_TRUE((*first)->Publish().ok());
    EXPECT_EQ(ReadFile(dir.File("m.csv")).value(), "first");
  }
  EXPECT_TRUE(PartialFile::Create(dir.File("m.csv")).ok());
  EXPECT_EQ(ReadFile(dir.File("m.csv")).value(), "first");
}

TEST(PartialFileTest, ReplacesFilesOnlyAndFollowsLinks) {
  TestDir dir;
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  const auto pipe = PartialFile::Create(dir.File("pipe"));
  EXPECT_TRUE(absl::IsFailedPrecondition(pipe.status()));
  EXPECT_THAT(std::string(pipe.status().message()), HasSubstr("is not a regular file"));
  EXPECT_TRUE(absl::IsFailedPrecondition(PartialFile::Create("/dev/null").status()));
  ASSERT_TRUE(WriteFileAtomically(dir.File("target"), "old").ok());
  std::filesystem::create_symlink("target", dir.File("link"));
  {
    const auto file = PartialFile::Create(dir.File("link"));
    ASSERT_TRUE(file.ok()) << file.status();
    std::ofstream((*file)->partial()) << "new";
    EXPECT_TRUE((*file)->Publish().ok());
  }
  EXPECT_TRUE(std::filesystem::is_symlink(dir.File("link")));
  EXPECT_EQ(ReadFile(dir.File("target")).value(), "new");
  EXPECT_THAT(ListDir(dir.path()).value(), ElementsAre("link", "pipe", "target"));
}

}  // namespace
}  // namespace atl
