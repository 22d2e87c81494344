#include "storage/rocksdb/meta_db.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/storage/faulty_file_system.h"
#include "tests/storage/temp_dir.h"

namespace atl {
namespace {

class MetaDbTest : public testing::Test {
 protected:
  MetaDbTest()
      : file_system_(std::make_shared<FaultyFileSystem>()), env_(rocksdb::NewCompositeEnv(file_system_)) {
    Open();
  }

  void Open() {
    meta_.reset();
    auto opened = MetaDb::Open(temp_.path() + "/meta", env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    meta_ = *std::move(opened);
  }
  absl::Status Put(const std::string& key, const std::string& value) {
    MetaBatch batch;
    batch.Put(key, value);
    return meta_->Write(batch, Durability::kSynced);
  }
  std::map<std::string, std::string> All() { return AllOf(*meta_); }
  static std::map<std::string, std::string> AllOf(MetaDb& meta) {
    std::map<std::string, std::string> all;
    const absl::Status scanned = meta.Scan("", "", [&](std::string_view key, std::string_view value) {
      all.emplace(key, value);
      return absl::StatusOr<bool>(true);
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return all;
  }
  /// As a crash of this moment would leave it. RocksDB removes old files in the background: one of them may
  /// be gone before it is copied, and then the copy is of a later moment.
  void CopyAsAfterACrash() const {
    const std::string copy = temp_.path() + "/crashed";
    std::error_code error;
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::filesystem::remove_all(copy);
      std::filesystem::copy(temp_.path() + "/meta", copy, std::filesystem::copy_options::recursive, error);
      if (!error) return;
    }
    ADD_FAILURE() << "the database cannot be copied: " << error.message();
  }
  void FailSyncs(bool fail) { file_system_->fail_log_sync = fail; }

  const TempDir temp_;
  const std::shared_ptr<FaultyFileSystem> file_system_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<MetaDb> meta_;
};

using Records = std::map<std::string, std::string>;

TEST_F(MetaDbTest, ScansARangeInOrder) {
  for (const char* key : {"b/2", "a", "b/1", "b/3", "c"}) ASSERT_TRUE(Put(key, key).ok());
  std::string seen;
  const auto visit = [&](std::string_view key, std::string_view) -> absl::StatusOr<bool> {
    absl::StrAppend(&seen, std::string(key), " ");
    return true;
  };
  ASSERT_TRUE(meta_->Scan("b/", "b0", visit).ok());
  EXPECT_EQ(seen, "b/1 b/2 b/3 ");
}

TEST_F(MetaDbTest, AWriteThatFailedIsUndoneBeforeTheNextOne) {
  ASSERT_TRUE(Put("head", "1").ok());
  FailSyncs(true);
  MetaBatch batch;
  batch.Put("head", "2");
  batch.Put("round", "2");
  EXPECT_EQ(meta_->Write(batch, Durability::kSynced).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(All(), (Records{{"head", "1"}}));
  EXPECT_FALSE(Put("other", "x").ok());
  FailSyncs(false);
  ASSERT_TRUE(Put("other", "y").ok());
  EXPECT_EQ(All(), (Records{{"head", "1"}, {"other", "y"}}));
  Open();
  EXPECT_EQ(All(), (Records{{"head", "1"}, {"other", "y"}}));
  ASSERT_TRUE(meta_->Write(batch, Durability::kSynced).ok());
  EXPECT_EQ(All(), (Records{{"head", "2"}, {"other", "y"}, {"round", "2"}}));
}

TEST_F(MetaDbTest, ABufferedWriteIsDurableWithTheNextSyncedOne) {
  const auto buffer = [this](const std::string& key) {
    MetaBatch batch;
    batch.Put(key, "1");
    return meta_->Write(batch, Durability::kBuffered);
  };
  const auto after_a_power_cut = [this](const std::string& copy) {
    file_system_->CopyAsAfterAPowerCut(temp_.path() + "/meta", temp_.path() + "/" + copy);
    return AllOf(**MetaDb::Open(temp_.path() + "/" + copy));
  };
  ASSERT_TRUE(Put("head", "1").ok());
  ASSERT_TRUE(buffer("vote/a").ok());
  EXPECT_EQ(after_a_power_cut("one"), (Records{{"head", "1"}})) << "the test's own power cut cuts nothing";
  ASSERT_TRUE(buffer("vote/b").ok());
  ASSERT_TRUE(Put("head", "2").ok());
  ASSERT_TRUE(buffer("vote/c").ok());
  const Records left = after_a_power_cut("two");
  EXPECT_EQ(left.at("head"), "2");
  EXPECT_TRUE(left.contains("vote/b"));
  EXPECT_FALSE(left.contains("vote/c"));
}

TEST_F(MetaDbTest, TheFaultLeavesTheWriteInTheLog) {
  // Without the undoing, a crash leaves the unacknowledged write: the reason for it. RocksDB recovers in the
  // background: it writes a table of what was acknowledged and drops the log. Only while it cannot is a copy
  // the same whenever it is taken.
  file_system_->fail_tables = true;
  ASSERT_TRUE(Put("head", "1").ok());
  FailSyncs(true);
  EXPECT_FALSE(Put("head", "2").ok());
  CopyAsAfterACrash();
  FailSyncs(false);
  auto crashed = MetaDb::Open(temp_.path() + "/crashed", nullptr);
  ASSERT_TRUE(crashed.ok()) << crashed.status();
  meta_ = *std::move(crashed);
  EXPECT_EQ(All(), (Records{{"head", "2"}}));
}

TEST_F(MetaDbTest, SettlingRemovesAWriteInDoubtFromTheDisk) {
  ASSERT_TRUE(Put("head", "1").ok());
  FailSyncs(true);
  EXPECT_FALSE(Put("head", "2").ok());
  FailSyncs(false);
  ASSERT_TRUE(meta_->Settle().ok());
  CopyAsAfterACrash();
  EXPECT_EQ(AllOf(**MetaDb::Open(temp_.path() + "/crashed")), (Records{{"head", "1"}}));
}

TEST_F(MetaDbTest, ADatabaseThatWasTakenAwayIsNotReplacedByAnEmptyOne) {
  ASSERT_TRUE(Put("head", "1").ok());
  FailSyncs(true);
  EXPECT_FALSE(Put("head", "2").ok());
  FailSyncs(false);
  std::filesystem::rename(temp_.path() + "/meta", temp_.path() + "/away");
  std::filesystem::create_directory(temp_.path() + "/meta");  // the mount point without its volume
  const absl::Status rejected = Put("head", "3");
  EXPECT_EQ(rejected.code(), absl::StatusCode::kDataLoss) << rejected;
  EXPECT_FALSE(std::filesystem::exists(temp_.path() + "/meta/CURRENT"));
  std::filesystem::rename(temp_.path() + "/meta", temp_.path() + "/mount_point");
  std::filesystem::rename(temp_.path() + "/away", temp_.path() + "/meta");
  ASSERT_TRUE(Put("head", "4").ok());
  EXPECT_EQ(All(), (Records{{"head", "4"}}));
}

TEST_F(MetaDbTest, ADeletionThatFailedIsUndone) {
  ASSERT_TRUE(Put("a", "1").ok());
  FailSyncs(true);
  MetaBatch batch;
  batch.Delete("a");
  EXPECT_FALSE(meta_->Write(batch, Durability::kSynced).ok());
  FailSyncs(false);
  ASSERT_TRUE(Put("b", "2").ok());
  EXPECT_EQ(All(), (Records{{"a", "1"}, {"b", "2"}}));
}

TEST_F(MetaDbTest, AmongManyThreadsExactlyTheAcknowledgedWritesStay) {
  constexpr int kThreads = 4;
  std::vector<Records> acknowledged(kThreads);
  std::atomic<int> rejected = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        if (t == 0) FailSyncs(i % 10 == 5);
        const std::string key = absl::StrCat(t, "/", i);
        if (Put(key, "v").ok()) {
          acknowledged[t].emplace(key, "v");
        } else {
          ++rejected;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  FailSyncs(false);
  ASSERT_TRUE(Put("last", "v").ok());
  Records expected{{"last", "v"}};
  for (const Records& records : acknowledged) expected.insert(records.begin(), records.end());
  EXPECT_EQ(All(), expected);
  EXPECT_GT(rejected.load(), 0);
  Open();
  EXPECT_EQ(All(), expected);
}

}  // namespace
}  // namespace atl
