#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "storage/rocksdb/own_files.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/common/file_tree.h"
#include "tests/storage/store_model.h"
#include "tests/storage/temp_dir.h"

// Which folders are taken for a data directory, and that nothing of somebody else is removed.

namespace atl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DataDirTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& folder, bool create = true) {
    return OpenRocksDbStore({.data_dir = folder, .create_if_missing = create, .headroom_bytes = 0});
  }
  /// A name that ends in '/' is a folder.
  static void Plant(const std::string& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const std::string path = JoinPath(folder, name);
      const size_t parent = path.rfind('/');
      ASSERT_TRUE(CreateDirs(path.substr(0, parent)).ok()) << path;
      if (path.ends_with('/')) continue;
      ASSERT_TRUE(WriteFileAtomically(path, "theirs").ok()) << path;
    }
  }
  std::string NewFolder() { return temp_.path() + "/" + std::to_string(folders_++); }
  void MakeRun(const std::string& folder) {
    auto store = Open(folder);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(model_.CreateRun(**store).ok());
    ASSERT_TRUE(model_.Seed(**store).ok());
  }

  const TempDir temp_;
  const StoreModel model_ = StoreModel::Make(/*rows=*/400, /*payload_bytes=*/20000);
  int folders_ = 0;
};

TEST_F(DataDirTest, AFolderOfOthersIsRejectedAndStaysAsItIs) {
  const std::vector<std::vector<std::string>> trees = {
      {"photos/"},
      {"checkpoints/step-1000/model.bin", "train.py"},
      {"checkpoints/step-1000/model.bin"},
      {"checkpoints/step-1000/"},
      {"checkpoints/model.bin"},
      {"checkpoints/step-1000/meta/"},
      {"workers/", "sst/mine/data", "a.py"},
      {"workers/w0/notes.txt"},
      {"sst/mine/data"},
      {"sst/big.sst"},
      {"meta/notes.txt"},
      {"meta/data/"},
      {"shards/part-0/"},
      {"shards/00/model.safetensors"},
      {"contributions/alice.patch"},
      {"access/keys.txt"},
      {"LOCK/"},
      {"epoch.begun/"},
  };
  for (const std::vector<std::string>& tree : trees) {
    const std::string folder = NewFolder();
    Plant(folder, tree);
    const auto before = TreeOf(folder);
    for (const bool create : {true, false}) {
      if (!create && !FileExists(JoinPath(folder, "meta"))) continue;
      const absl::Status rejected = Open(folder, create).status();
      EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << tree[0] << ": " << rejected;
      EXPECT_THAT(rejected.ToString(), HasSubstr("is not a data directory")) << tree[0];
    }
    EXPECT_TRUE(TreeOf(folder) == before) << tree[0];
    EXPECT_TRUE(!FileExists(JoinPath(folder, "LOCK")) || tree[0] == "LOCK/") << tree[0];
  }
}

TEST_F(DataDirTest, ACopyInsideAFolderIsNamed) {
  // What `cp -r checkpoints/c1 FOLDER` makes of a folder that exists.
  const std::string folder = NewFolder(), copy = JoinPath(folder, "c1");
  MakeRun(copy);
  const auto before = TreeOf(folder);
  for (const bool create : {true, false}) {
    const absl::Status rejected = Open(folder, create).status();
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        rejected.ToString(),
        HasSubstr(absl::StrCat(
            copy, " is a run or a checkpoint: 'cp -r' copies into a folder that exists; give ", copy)));
  }
  EXPECT_TRUE(TreeOf(folder) == before);
  EXPECT_TRUE(Open(copy).ok());
}

TEST_F(DataDirTest, ALockFileOfAnotherProgramIsNotReplaced) {
  const std::string folder = NewFolder();
  ASSERT_TRUE(CreateDirs(folder).ok());
  const std::string lock = JoinPath(folder, "LOCK");
  ASSERT_TRUE(WriteFileAtomically(lock, "[[package]]\nname = \"numpy\"\n").ok());
  EXPECT_EQ(Open(folder).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ReadFile(lock).value(), HasSubstr("numpy"));
}

TEST_F(DataDirTest, LinksIntoOtherFoldersAreNotFollowedBelowTheTop) {
  const std::string folder = NewFolder(), elsewhere = NewFolder();
  ASSERT_TRUE(CreateDirs(JoinPath(folder, "shards")).ok());
  ASSERT_TRUE(CreateDirs(elsewhere).ok());
  std::filesystem::create_directory_symlink(elsewhere, folder + "/shards/00");
  EXPECT_EQ(Open(folder).status().code(), absl::StatusCode::kInvalidArgument);
  // An operator may put a part of a new run on another disk.
  const std::string spread = NewFolder();
  ASSERT_TRUE(CreateDirs(spread).ok());
  std::filesystem::create_directory_symlink(elsewhere, spread + "/shards");
  EXPECT_TRUE(Open(spread).ok());
}

TEST_F(DataDirTest, AFirstStartThatWasKilledGoesOn) {
  const std::vector<std::vector<std::string>> trees = {
      {".git/config", "lost+found/"},
      {"meta/", "sst/", "workers/", "checkpoints/"},
      {"meta/MANIFEST-000001", "meta/000001.dbtmp", "meta/IDENTITY", "meta/LOCK"},
      {"meta/", "sst/", "shards/", "contributions/"},
      {"access/tokens.json.tmp.4711", "access/admin.token", "access/launched/w0.token"},
      {"sst/probe", "sst/00ff00ff00ff00ff-01-000007.sst"},
  };
  for (const std::vector<std::string>& tree : trees) {
    const std::string folder = NewFolder();
    Plant(folder, tree);
    const auto opened = Open(folder);
    EXPECT_TRUE(opened.ok()) << tree[0] << ": " << opened.status();
    EXPECT_EQ(ListDir(folder + "/sst")->size(), 0u);
  }
}

TEST_F(DataDirTest, ARunWithFilesOfOthersOpensAndKeepsThem) {
  const std::string folder = NewFolder();
  MakeRun(folder);
  Plant(folder, {"NOTES.txt", "sst/mine/data", "sst/old.sst", "checkpoints/step-1000/model.bin",
                 "checkpoints/half/meta/notes.txt", "workers/w0/state", "sst/00ff00ff00ff00ff-01-000007.sst",
                 "checkpoints/cut/meta.tmp/CURRENT"});
  ASSERT_TRUE(Open(folder).ok());
  for (const char* kept : {"NOTES.txt", "sst/mine/data", "sst/old.sst", "checkpoints/step-1000/model.bin",
                           "checkpoints/half/meta/notes.txt", "workers/w0/state"}) {
    EXPECT_TRUE(FileExists(JoinPath(folder, kept))) << kept;
  }
  EXPECT_FALSE(FileExists(folder + "/sst/00ff00ff00ff00ff-01-000007.sst"));
  EXPECT_FALSE(FileExists(folder + "/checkpoints/cut"));
  const auto in_the_way = (*Open(folder))->CreateCheckpoint({.name = "half", .software_version = "test"});
  EXPECT_EQ(in_the_way.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(in_the_way.status().ToString(), HasSubstr("is not a checkpoint"));
}

TEST_F(DataDirTest, ThePartsOfARunAreNoDataDirectories) {
  const std::string folder = NewFolder();
  MakeRun(folder);
  const auto before = TreeOf(folder);
  for (const char* part : {"meta", "shards", "shards/00", "sst", "contributions", "contributions/new",
                           "access", "checkpoints", "workers/w9"}) {
    const absl::Status rejected = Open(JoinPath(folder, part)).status();
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << part << ": " << rejected;
    EXPECT_THAT(rejected.ToString(), AllOf(HasSubstr(folder), HasSubstr("another run"))) << part;
  }
  EXPECT_TRUE(TreeOf(folder) == before);
}

TEST_F(DataDirTest, EveryFileOfARunIsKnownByItsName) {
  const std::string folder = NewFolder();
  MakeRun(folder);
  auto store = Open(folder).value();
  ASSERT_TRUE(model_.Push(*store, model_.KeyOf("a", Version(0))).ok());
  ASSERT_TRUE(store->CreateCheckpoint({.name = "ck", .software_version = "test"}).ok());
  for (int life = 0; life < 2; ++life) {
    const auto foreign = FindForeign({.root = folder});
    ASSERT_TRUE(foreign.ok()) << foreign.status();
    EXPECT_FALSE(foreign->has_value()) << **foreign;
    store.reset();
  }
}

}  // namespace
}  // namespace atl
