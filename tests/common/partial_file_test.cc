#include "common/partial_file.h"

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atoll {
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
    ASSERT_TRUE(WriteFileAtomically((*file)->partial(), "new").ok());
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

}  // namespace
}  // namespace atoll
