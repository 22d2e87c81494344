#include "storage/rocksdb/rocksdb_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "core/disk_plan.h"
#include "storage/rocksdb/contribution_folder.h"
#include "tests/storage/store_model.h"
#include "tests/storage/temp_dir.h"

namespace atl {
namespace {

using testing::HasSubstr;

class RocksDbStoreTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RunStore>> TryOpen() {
    return OpenRocksDbStore({.data_dir = dir(), .create_if_missing = true, .headroom_bytes = 0});
  }
  void Open() {
    store_.reset();
    auto opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    recovery_ = store_->Recover().value();
  }
  /// Run with version 0 stored and version 1 committed by "a".
  void MakeRun() {
    Open();
    ASSERT_TRUE(model_.CreateRun(*store_).ok());
    ASSERT_TRUE(model_.Seed(*store_).ok());
    ASSERT_TRUE(model_.Push(*store_, model_.KeyOf("a", Version(0))).ok());
    ASSERT_TRUE(model_.Commit(*store_, Version(1), "a").ok());
  }
  std::string dir() const { return temp_.path() + "/run"; }
  std::string InRun(const std::string& name) const { return absl::StrCat(dir(), "/", name); }
  std::string OpenError() {
    store_.reset();
    return TryOpen().status().ToString();
  }
  std::vector<std::string> NamesIn(const std::string& name) const { return ListDir(InRun(name)).value(); }
  size_t FilesIn(const std::string& name) const { return NamesIn(name).size(); }
  /// Tensor files over all shards.
  size_t TensorFiles() const {
    size_t files = 0;
    for (uint32_t shard = 0; shard < model_.identity.shards; ++shard) {
      for (const std::string& name : NamesIn(absl::StrCat("shards/0", shard)))
        files += name.ends_with(".sst") ? 1 : 0;
    }
    return files;
  }

  const TempDir temp_;
  const StoreModel model_ = StoreModel::Make(/*rows=*/400, /*payload_bytes=*/20000);
  std::unique_ptr<RunStore> store_;
  std::optional<Recovery> recovery_;
};

TEST_F(RocksDbStoreTest, ASecondCoordinatorIsToldWhoHoldsTheDirectory) {
  Open();
  const auto second = TryOpen();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().ToString(),
              testing::AllOf(HasSubstr(dir()), HasSubstr(absl::StrCat("process ", ::getpid()))));
  store_.reset();
  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(RocksDbStoreTest, ADirectoryIsNotMadeUnasked) {
  const auto opened = OpenRocksDbStore({.data_dir = dir(), .create_if_missing = false});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(FileExists(dir()));
  MakeRun();
  store_.reset();
  EXPECT_TRUE(OpenRocksDbStore({.data_dir = dir(), .create_if_missing = false}).ok());
}

TEST_F(RocksDbStoreTest, AMissingShardIsNamed) {
  MakeRun();
  store_.reset();
  ASSERT_TRUE(RemoveAll(InRun("shards/01")).ok());
  EXPECT_THAT(OpenError(), testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr("shards/01 is missing")));
  EXPECT_FALSE(FileExists(InRun("shards/01")));
}

TEST_F(RocksDbStoreTest, AnEmptiedShardIsNamed) {
  MakeRun();
  store_.reset();
  ASSERT_TRUE(RemoveAll(InRun("shards/01")).ok());
  ASSERT_TRUE(CreateDirs(InRun("shards/01")).ok());
  EXPECT_THAT(OpenError(), testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr("shards/01/CURRENT is missing")));
  EXPECT_EQ(FilesIn("shards/01"), 0u) << "nothing is made in its place";
}

TEST_F(RocksDbStoreTest, AForeignShardIsRejected) {
  MakeRun();
  ASSERT_TRUE(CreateDirs(InRun("shards/03")).ok());
  EXPECT_THAT(OpenError(), HasSubstr("holds 4 folders, but the run has 3 shards"));
}

TEST_F(RocksDbStoreTest, AMissingOrCutPayloadThatReplayNeedsIsNamed) {
  MakeRun();
  store_.reset();
  const std::string file =
      InRun(absl::StrCat("contributions/", ContributionFolder::FileName(model_.KeyOf("a", Version(0)))));
  const std::string payload = ReadFile(file).value();
  ASSERT_TRUE(WriteFileAtomically(file, payload.substr(1)).ok());
  EXPECT_THAT(OpenError(),
              testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr("20000 bytes"), HasSubstr("has 19999")));
  ASSERT_TRUE(RemoveFile(file).ok());
  EXPECT_THAT(OpenError(), testing::AllOf(HasSubstr("worker a"), HasSubstr("cannot be read")));
  ASSERT_TRUE(WriteFileAtomically(file, payload).ok());
  Open();
  EXPECT_TRUE(model_.CheckPayload(*store_, model_.KeyOf("a", Version(0))).ok());
}

TEST_F(RocksDbStoreTest, ADamagedTensorIsDataLossAndNotAWrongNumber) {
  MakeRun();
  store_.reset();
  for (const std::string& name : NamesIn("shards/00")) {
    if (!name.ends_with(".sst")) continue;
    std::string bytes = ReadFile(InRun(absl::StrCat("shards/00/", name))).value();
    bytes[1000] = static_cast<char>(bytes[1000] ^ 1);
    ASSERT_TRUE(WriteFileAtomically(InRun(absl::StrCat("shards/00/", name)), bytes).ok());
  }
  Open();
  const absl::Status read = store_->ReadVersion(model_.layout, Version(0)).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(read.ToString(), HasSubstr("fragment 0 version 0 vector 0 chunk 0"));
}

TEST_F(RocksDbStoreTest, LeftoversOfACrashAreRemoved) {
  MakeRun();
  ASSERT_TRUE(model_.Push(*store_, model_.KeyOf("b", Version(1))).ok());
  store_.reset();
  const auto plant = [this](const std::string& name) {
    ASSERT_TRUE(WriteFileAtomically(InRun(name), "leftover").ok());
  };
  const auto contribution = [this](const std::string& worker, uint64_t base) {
    return absl::StrCat("contributions/", ContributionFolder::FileName(model_.KeyOf(worker, Version(base))));
  };
  plant("sst/0123456789abcdef-00-000001.sst");
  plant(contribution("late", 0));     // may be resumed by one who may be late
  plant(contribution("partial", 1));  // may be resumed
  plant("contributions/notes.txt");   // somebody else's
  Open();
  EXPECT_EQ(FilesIn("sst"), 0u);
  EXPECT_TRUE(FileExists(InRun(contribution("late", 0)))) << "nobody has said yet how late one may be";
  store_->KeepLate(0);
  EXPECT_FALSE(FileExists(InRun(contribution("late", 0))));
  EXPECT_TRUE(FileExists(InRun(contribution("a", 0))));
  EXPECT_TRUE(FileExists(InRun(contribution("b", 1))));
  EXPECT_TRUE(FileExists(InRun("contributions/notes.txt")));
  EXPECT_EQ((*store_->StartUpload(model_.KeyOf("partial", Version(1)), 100))->received_bytes(), 8u);
}

TEST_F(RocksDbStoreTest, ASeedThatWasNeverRecordedLeavesNothing) {
  Open();
  ASSERT_TRUE(model_.CreateRun(*store_).ok());
  ASSERT_TRUE(model_.Seed(*store_).ok());
  store_.reset();
  // The shards of a seeded run under the meta of a run that was not: as after a crash before the record.
  const TempDir other;
  {
    auto unseeded =
        OpenRocksDbStore({.data_dir = other.path(), .create_if_missing = true, .headroom_bytes = 0});
    ASSERT_TRUE(unseeded.ok());
    ASSERT_TRUE(model_.CreateRun(**unseeded).ok());
  }
  ASSERT_TRUE(RemoveAll(InRun("meta")).ok());
  ASSERT_TRUE(RenameFile(other.path() + "/meta", InRun("meta")).ok());
  EXPECT_GT(TensorFiles(), 0u);
  Open();
  EXPECT_FALSE(recovery_->manifest.has_value());
  EXPECT_EQ(TensorFiles(), 0u);
  EXPECT_EQ(FilesIn("contributions"), 0u);
  ASSERT_TRUE(model_.Seed(*store_).ok());
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(0)).ok());
}

TEST_F(RocksDbStoreTest, WhatOnlyASeededRunHasIsNotRemovedWhenTheSeedIsUnknown) {
  MakeRun();
  store_.reset();
  const TempDir other;
  {
    auto unseeded =
        OpenRocksDbStore({.data_dir = other.path(), .create_if_missing = true, .headroom_bytes = 0});
    ASSERT_TRUE(model_.CreateRun(**unseeded).ok());
  }
  ASSERT_TRUE(RemoveAll(InRun("meta")).ok());
  ASSERT_TRUE(RenameFile(other.path() + "/meta", InRun("meta")).ok());
  EXPECT_THAT(OpenError(), testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr("records were lost")));
  EXPECT_EQ(FilesIn("contributions"), 1u);
  EXPECT_GT(TensorFiles(), 0u);
}

TEST_F(RocksDbStoreTest, DroppedVersionsFreeTheirFiles) {
  MakeRun();
  const size_t one_version = TensorFiles();
  EXPECT_EQ(one_version, model_.identity.shards);
  ASSERT_TRUE(model_.Store(*store_, Version(1), 2).ok());
  EXPECT_EQ(TensorFiles(), 2 * one_version);
  for (uint64_t version = 2; version <= 6; ++version) {
    ASSERT_TRUE(model_.Push(*store_, model_.KeyOf("a", Version(version - 1))).ok());
    ASSERT_TRUE(model_.Commit(*store_, Version(version), "a").ok());
    ASSERT_TRUE(model_.Store(*store_, Version(version), 2).ok());
    EXPECT_EQ(TensorFiles(), 2 * one_version);
    EXPECT_EQ(FilesIn("contributions"), 1u);  // version 'version' can be recomputed from the one before
    EXPECT_EQ(FilesIn("sst"), 0u);
  }
  Open();
  EXPECT_EQ(TensorFiles(), 2 * one_version);
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(5)).ok());
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(6)).ok());
}

TEST_F(RocksDbStoreTest, TheReserveOfTheDiskIsRejectedToPayloadsAndTensors) {
  Open();
  ASSERT_TRUE(model_.CreateRun(*store_).ok());
  store_.reset();
  auto tight =
      OpenRocksDbStore({.data_dir = dir(), .create_if_missing = true, .headroom_bytes = uint64_t{1} << 60});
  ASSERT_TRUE(tight.ok());
  const absl::Status seeded = model_.Seed(**tight);
  EXPECT_EQ(seeded.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(seeded.ToString(), testing::AllOf(HasSubstr(dir()), HasSubstr("free some space")));
}

/// Of all files below the folder, what is reserved for them included.
uint64_t AllocatedBytes(const std::string& folder) {
  uint64_t blocks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat file {};
    if (::stat(entry.path().c_str(), &file) == 0) blocks += static_cast<uint64_t>(file.st_blocks);
  }
  return blocks * 512;
}

TEST_F(RocksDbStoreTest, ANewDirectoryTakesWhatThePlanCounts) {
  for (const uint32_t shards : {1U, 4U}) {
    const TempDir temp;
    const RocksDbStoreOptions options{.data_dir = temp.path() + "/run"};
    StoreModel model = model_;
    model.identity.shards = shards;
    for (const bool created : {false, true}) {
      auto store = OpenRocksDbStore(options);
      ASSERT_TRUE(store.ok()) << store.status();
      if (!created) {
        ASSERT_TRUE(model.CreateRun(**store).ok());
      }
      EXPECT_LE(AllocatedBytes(temp.path()), EmptyDirectoryBytes(shards)) << shards << " shards";
    }
  }
}

TEST(ContributionFolderTest, FileNamesRoundTripAndForeignOnesDoNot) {
  const ContributionKey key{.epoch = Epoch(UINT64_MAX),
                            .fragment = FragmentId(3),
                            .base = Version(0x1234),
                            .worker = "a-b.c",
                            .sequence = 0xffffffff};
  const std::string name = ContributionFolder::FileName(key);
  EXPECT_EQ(name, "ffffffffffffffff-00000003-0000000000001234-ffffffff-a-b.c");
  EXPECT_EQ(ContributionFolder::ParseFileName(name), key);
  for (const std::string& foreign :
       {std::string(), name.substr(0, 30), name.substr(0, 52), absl::StrCat("X", name.substr(1)), name + "/x",
        name + "A", absl::StrCat("FFFFFFFFFFFFFFFF", name.substr(16)), absl::StrCat("-", name)}) {
    EXPECT_FALSE(ContributionFolder::ParseFileName(foreign).has_value()) << foreign;
  }
}

}  // namespace
}  // namespace atl
