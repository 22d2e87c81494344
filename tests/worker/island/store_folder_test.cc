#include "worker/island/store_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace atl {
namespace {

namespace fs = std::filesystem;

/// A folder for temporary files of its own.
class StoreFolderTest : public ::testing::Test {
 protected:
  StoreFolderTest() : temporary_(::testing::TempDir() + "/store_folder_test") {
    fs::remove_all(temporary_);
    fs::create_directories(temporary_);
    const char* before = std::getenv("TMPDIR");
    if (before != nullptr) before_ = before;
    ::setenv("TMPDIR", temporary_.c_str(), 1);
  }
  ~StoreFolderTest() override {
    if (before_.empty()) ::unsetenv("TMPDIR");
    if (!before_.empty()) ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(temporary_);
  }

  /// As a supervisor that was killed an hour ago leaves it.
  fs::path LeftOver(const std::string& name) const {
    const fs::path folder = temporary_ / name;
    fs::create_directories(folder);
    std::ofstream(folder / "store") << "rank0";
    Age(folder);
    return folder;
  }

  static void Age(const fs::path& folder) {
    const timespec hour_ago = {.tv_sec = ::time(nullptr) - 3600, .tv_nsec = 0};
    const timespec times[2] = {hour_ago, hour_ago};
    ASSERT_EQ(::utimensat(AT_FDCWD, folder.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }

  const fs::path temporary_;
  std::string before_;
};

TEST_F(StoreFolderTest, IsThisUsersAloneAndEndsWithItsObject) {
  auto folder = std::make_unique<StoreFolder>();
  ASSERT_TRUE(folder->Make().ok());
  const fs::path path = fs::path(folder->file()).parent_path();
  EXPECT_TRUE(fs::exists(folder->file()));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  folder.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StoreFolderTest, RemovesWhatKilledSupervisorsLeft) {
  const fs::path left = LeftOver("atoll-ranks-aaaaaa");
  StoreFolder folder;
  ASSERT_TRUE(folder.Make().ok());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(StoreFolderTest, LeavesWhatLivesAndWhatIsAnothers) {
  StoreFolder living;
  ASSERT_TRUE(living.Make().ok());
  Age(fs::path(living.file()).parent_path());
  const fs::path other = LeftOver("other-aaaaaa");
  const fs::path target = LeftOver("kept");
  fs::create_directory_symlink(target, temporary_ / "atoll-ranks-bbbbbb");
  Age(temporary_ / "atoll-ranks-bbbbbb");
  const fs::path young = temporary_ / "atoll-ranks-cccccc";
  fs::create_directory(young);
  StoreFolder folder;
  ASSERT_TRUE(folder.Make().ok());
  EXPECT_TRUE(fs::exists(living.file()));
  EXPECT_TRUE(fs::exists(other / "store"));
  EXPECT_TRUE(fs::exists(target / "store"));
  EXPECT_TRUE(fs::exists(young));
}

TEST_F(StoreFolderTest, LeavesAUsersFolderWithANameLikeOurs) {
  const fs::path longer = LeftOver("atoll-ranks-results");
  const fs::path holds_more = LeftOver("atoll-ranks-thesis");
  std::ofstream(holds_more / "chapter") << "one";
  Age(holds_more);
  const fs::path holds_a_folder = LeftOver("atoll-ranks-figure");
  fs::remove(holds_a_folder / "store");
  fs::create_directory(holds_a_folder / "store");
  Age(holds_a_folder);
  StoreFolder folder;
  ASSERT_TRUE(folder.Make().ok());
  EXPECT_TRUE(fs::exists(longer / "store"));
  EXPECT_TRUE(fs::exists(holds_more / "store"));
  EXPECT_TRUE(fs::exists(holds_more / "chapter"));
  EXPECT_TRUE(fs::exists(holds_a_folder / "store"));
}

TEST_F(StoreFolderTest, NamesThePlaceThatIsNotThere) {
  ::setenv("TMPDIR", (temporary_ / "none").c_str(), 1);
  StoreFolder folder;
  const absl::Status made = folder.Make();
  EXPECT_FALSE(made.ok());
  EXPECT_NE(std::string(made.message()).find("TMPDIR"), std::string::npos) << made;
  EXPECT_NE(std::string(made.message()).find(temporary_ / "none"), std::string::npos) << made;
}

}  // namespace
}  // namespace atl
