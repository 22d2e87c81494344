#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/file.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/storage/small_disk.h"
#include "tests/storage/store_model.h"
#include "tests/storage/temp_dir.h"

// A full disk in every kind of write: nothing acknowledged is lost, what failed did not happen, and the same
// call succeeds once there is room, with and without a restart in between.

namespace atl {
namespace {

using testing::HasSubstr;

constexpr uint64_t kDiskBytes = uint64_t{72} << 20;

/// Mounted once, before any test starts a thread.
class DiskFullTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    auto disk = SmallDisk::Mount(folder_->path(), kDiskBytes);
    mounted_ = disk.status();
    if (disk.ok()) disk_ = disk->release();
  }
  static void TearDownTestSuite() {
    delete disk_;
    delete folder_;
  }

  void SetUp() override {
    if (disk_ == nullptr)
      GTEST_SKIP() << "needs root or a user namespace to mount a small tmpfs: " << mounted_;
    ASSERT_TRUE(disk_->FreeAll().ok());
    Reopen();
    ASSERT_TRUE(model_.CreateRun(*store_).ok());
    ASSERT_TRUE(model_.Seed(*store_).ok());
    ASSERT_TRUE(model_.Push(*store_, a_).ok());
  }
  void TearDown() override {
    if (disk_ == nullptr) return;  // skipped
    store_.reset();
    EXPECT_TRUE(RemoveAll(RunDir()).ok());
  }

  static std::string RunDir() { return disk_->path() + "/run"; }
  static absl::StatusOr<std::unique_ptr<RunStore>> Open() {
    return OpenRocksDbStore({.data_dir = RunDir(), .create_if_missing = true, .headroom_bytes = 0});
  }
  void Reopen() {
    store_.reset();
    auto opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    recovery_ = store_->Recover().value();
  }

  /// Fills the disk to the last page, then meta's log, which has some room reserved, until it refuses.
  void FillEverything() {
    ASSERT_TRUE(disk_->LeaveFree(0).ok());
    absl::Status status;
    while (status.ok() && events_ < 1000) {
      status = store_->AppendEvent({.sequence = events_ + 1, .bytes = std::string(64 << 10, 'e')});
      if (status.ok()) ++events_;
    }
    ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ASSERT_GT(events_, 0u);
  }
  void ExpectRejected(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
  /// Everything that was acknowledged before the disk was full.
  void ExpectNothingLost() {
    EXPECT_TRUE(model_.CheckPayload(*store_, a_).ok());
    EXPECT_TRUE(model_.CheckVersion(*store_, Version(0)).ok());
    const auto events = store_->ReadEvents(0, 10000);
    ASSERT_TRUE(events.ok()) << events.status();
    EXPECT_EQ(events->size(), events_);
  }
  /// The run goes on: commits version 1, stores it, and finds all of it again.
  void ExpectTheRunGoesOn() {
    const absl::Status committed = model_.Commit(*store_, Version(1), "a");
    ASSERT_TRUE(committed.ok()) << committed;
    const absl::Status stored = model_.Store(*store_, Version(1), 2);
    ASSERT_TRUE(stored.ok()) << stored;
    ExpectNothingLost();
    Reopen();
    ExpectNothingLost();
    EXPECT_EQ(recovery_->fragments[0].head, Version(1));
    EXPECT_EQ(recovery_->fragments[0].stored, Version(1));
    EXPECT_TRUE(model_.CheckVersion(*store_, Version(1)).ok());
  }

  static TempDir* folder_;
  static SmallDisk* disk_;
  static absl::Status mounted_;

  const StoreModel model_ = StoreModel::Make(/*rows=*/2000, /*payload_bytes=*/1 << 20);
  const ContributionKey a_ = model_.KeyOf("a", Version(0));
  std::unique_ptr<RunStore> store_;
  std::optional<Recovery> recovery_;
  uint64_t events_ = 0;
};

TempDir* DiskFullTest::folder_ = nullptr;
SmallDisk* DiskFullTest::disk_ = nullptr;
absl::Status DiskFullTest::mounted_;

TEST_F(DiskFullTest, ACommitIsRepeatedWithoutARestart) {
  FillEverything();
  for (int attempt = 0; attempt < 3; ++attempt) ExpectRejected(model_.Commit(*store_, Version(1), "a"));
  ASSERT_TRUE(disk_->FreeAll().ok());
  ExpectTheRunGoesOn();
}

TEST_F(DiskFullTest, ACommitIsRepeatedAfterARestart) {
  FillEverything();
  ExpectRejected(model_.Commit(*store_, Version(1), "a"));
  store_.reset();
  const absl::Status opened = Open().status();  // still full
  if (!opened.ok()) ExpectRejected(opened);
  ASSERT_TRUE(disk_->FreeAll().ok());
  Reopen();
  // It was reported as failed; its bytes may all the same have reached the log before the process went.
  ASSERT_LE(recovery_->fragments[0].head, Version(1));
  EXPECT_EQ(recovery_->fragments[0].head, Version(0));  // a torn log holds no part of a batch
  ExpectNothingLost();
  ExpectTheRunGoesOn();
}

TEST_F(DiskFullTest, AnAcceptIsRepeatedOnTheSameUpload) {
  const ContributionKey b = model_.KeyOf("b", Version(0));
  const std::string payload = model_.PayloadOf(b);
  auto upload = store_->StartUpload(b, payload.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE((*upload)->Append(std::as_bytes(std::span(payload.data(), payload.size()))).ok());
  FillEverything();
  for (int attempt = 0; attempt < 3; ++attempt) ExpectRejected((*upload)->Accept(model_.ContributionOf(b)));
  EXPECT_EQ(store_->OpenPayload(b).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(disk_->FreeAll().ok());
  const absl::Status accepted = (*upload)->Accept(model_.ContributionOf(b));
  ASSERT_TRUE(accepted.ok()) << accepted;
  upload->reset();
  Reopen();
  EXPECT_EQ(recovery_->fragments[0].accepted.size(), 2u);
  EXPECT_TRUE(model_.CheckPayload(*store_, b).ok());
  ExpectTheRunGoesOn();
}

TEST_F(DiskFullTest, AnAcceptThatFailedIsNotThereAfterARestart) {
  const ContributionKey b = model_.KeyOf("b", Version(0));
  const std::string payload = model_.PayloadOf(b);
  auto upload = store_->StartUpload(b, payload.size());
  ASSERT_TRUE((*upload)->Append(std::as_bytes(std::span(payload.data(), payload.size()))).ok());
  FillEverything();
  ExpectRejected((*upload)->Accept(model_.ContributionOf(b)));
  upload->reset();
  ASSERT_TRUE(disk_->FreeAll().ok());
  Reopen();
  EXPECT_EQ(recovery_->fragments[0].accepted.size(), 1u);
  EXPECT_EQ((*store_->StartUpload(b, payload.size()))->received_bytes(),
            payload.size());  // resumes at its end
  EXPECT_TRUE(model_.Push(*store_, b).ok());
  ExpectTheRunGoesOn();
}

TEST_F(DiskFullTest, AnUploadIsRejectedBeforeItsBytesArrive) {
  ASSERT_TRUE(disk_->LeaveFree(model_.payload_bytes / 2).ok());
  const auto upload = store_->StartUpload(model_.KeyOf("b", Version(0)), model_.payload_bytes);
  ExpectRejected(upload.status());
  EXPECT_THAT(upload.status().ToString(), HasSubstr("worker b"));
  ASSERT_TRUE(disk_->FreeAll().ok());
  EXPECT_TRUE(model_.Push(*store_, model_.KeyOf("b", Version(0))).ok());
}

TEST_F(DiskFullTest, AnUploadThatReservedItsSpaceKeepsIt) {
  const ContributionKey b = model_.KeyOf("b", Version(0));
  const std::string payload = model_.PayloadOf(b);
  auto upload = store_->StartUpload(b, payload.size());
  ASSERT_TRUE(upload.ok());
  ASSERT_TRUE(disk_->LeaveFree(0).ok());
  EXPECT_TRUE((*upload)->Append(std::as_bytes(std::span(payload.data(), payload.size()))).ok());
  EXPECT_TRUE((*upload)->Accept(model_.ContributionOf(b)).ok());  // meta's log has room reserved as well
}

TEST_F(DiskFullTest, StoringIsRepeatedWithoutARestart) {
  ASSERT_TRUE(model_.Commit(*store_, Version(1), "a").ok());
  ASSERT_TRUE(disk_->LeaveFree(100000).ok());
  const absl::Status stored = model_.Store(*store_, Version(1), 2);
  ExpectRejected(stored);
  EXPECT_THAT(stored.ToString(), HasSubstr("fragment 0 version 1"));
  FillEverything();
  ExpectRejected(model_.Store(*store_, Version(1), 2));
  ASSERT_TRUE(disk_->FreeAll().ok());
  ASSERT_TRUE(model_.Store(*store_, Version(1), 2).ok());
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(1)).ok());
  ExpectNothingLost();
}

/// Little by little more room than the bare floats, so that the disk is full once in a tensor file, once in a
/// shard's own log of files, once in meta.
TEST_F(DiskFullTest, StoringMayFailAtAnyPageAndSucceedsInTheEnd) {
  ASSERT_TRUE(model_.Commit(*store_, Version(1), "a").ok());
  const uint64_t bare = 2 * model_.layout.elements * sizeof(float);
  int failures = 0;
  absl::Status stored;
  for (uint64_t pages = 0; pages < 4096; pages += pages < 64 ? 1 : 64) {
    ASSERT_TRUE(disk_->FreeAll().ok());
    Reopen();
    ASSERT_TRUE(disk_->LeaveFree(bare + 4096 * pages).ok());
    stored = model_.Store(*store_, Version(1), 2);

    if (stored.ok()) break;
    ExpectRejected(stored);
    ++failures;
    ASSERT_TRUE(model_.CheckVersion(*store_, Version(0)).ok());
    EXPECT_EQ(store_->ReadVersion(model_.layout, Version(1)).status().code(), absl::StatusCode::kNotFound);
  }
  ASSERT_TRUE(stored.ok()) << stored;
  EXPECT_GT(failures, 2);
  ASSERT_TRUE(disk_->FreeAll().ok());
  ExpectNothingLost();
  Reopen();
  EXPECT_EQ(recovery_->fragments[0].stored, Version(1));
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(1)).ok());
}

TEST_F(DiskFullTest, StoringSucceedsAfterARestart) {
  ASSERT_TRUE(model_.Commit(*store_, Version(1), "a").ok());
  const uint64_t bare = 2 * model_.layout.elements * sizeof(float);
  ASSERT_TRUE(disk_->LeaveFree(bare + 4096).ok());
  ExpectRejected(model_.Store(*store_, Version(1), 2));
  ASSERT_TRUE(disk_->FreeAll().ok());
  Reopen();
  EXPECT_EQ(recovery_->fragments[0].stored, Version(0));
  EXPECT_EQ(recovery_->fragments[0].to_replay.size(), 1u);
  ASSERT_TRUE(model_.Store(*store_, Version(1), 2).ok());
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(1)).ok());
  ExpectNothingLost();
}

TEST_F(DiskFullTest, ACheckpointLeavesNothingBehindAndTheRunUntouched) {
  ASSERT_TRUE(model_.Commit(*store_, Version(1), "a").ok());
  ASSERT_TRUE(disk_->LeaveFree(4096).ok());
  const auto made = store_->CreateCheckpoint({.name = "full", .created_unix_ns = 1});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
  EXPECT_FALSE(FileExists(RunDir() + "/checkpoints/full"));
  ASSERT_TRUE(disk_->FreeAll().ok());
  EXPECT_TRUE(model_.Store(*store_, Version(1), 2).ok());
  EXPECT_TRUE(store_->CreateCheckpoint({.name = "full", .created_unix_ns = 1}).ok());
  EXPECT_EQ((*store_->ListCheckpoints(true))[0].damage, "");
}

TEST_F(DiskFullTest, ARestoreHappensAsAWholeOrNotAtAll) {
  ASSERT_TRUE(model_.Commit(*store_, Version(1), "a").ok());
  RoundRecord record;
  record.epoch = Epoch(4711);
  record.version = Version(2);
  record.config_version = 1;
  const FragmentTensors tensors = model_.TensorsAt(Version(0));
  const EpochStart start{.epoch = Epoch(4711),
                         .layouts = {model_.layout},
                         .tensors = {ViewOf(tensors)},
                         .records = {record},
                         .partitions = {}};
  ASSERT_TRUE(disk_->LeaveFree(8192).ok());
  EXPECT_EQ(store_->BeginEpoch(start).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(disk_->FreeAll().ok());
  Reopen();
  EXPECT_EQ(recovery_->identity.epoch, model_.identity.epoch);
  EXPECT_EQ(recovery_->fragments[0].head, Version(1));
  ASSERT_TRUE(store_->BeginEpoch(start).ok());
  Reopen();
  EXPECT_EQ(recovery_->identity.epoch, Epoch(4711));
  EXPECT_TRUE(model_.CheckVersion(*store_, Version(0)).ok());
  EXPECT_EQ(store_->ReadVersion(model_.layout, Version(2))->parameters, tensors.parameters);
}

}  // namespace
}  // namespace atl
