// A data directory on a small file system that fills up in mid-run and is freed again.

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "common/durable_file.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"

namespace atl {
namespace {

class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    mounted_ = mkdir(path_.c_str(), 0755) == 0 && mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=256m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

  /// Takes all the space that is left.
  void Fill() const {
    auto file = DurableFile::Open(path_ + "/ballast", OpenMode::kTruncate);
    ASSERT_TRUE(file.ok());
    const std::vector<std::byte> block(64 << 10);
    uint64_t offset = 0;
    while (file->WriteAt(offset, block).ok()) offset += block.size();
    while (file->WriteAt(offset, std::span(block).first(1)).ok()) ++offset;
  }
  void Free() const { ASSERT_TRUE(RemoveFile(path_ + "/ballast").ok()); }

 private:
  const std::string path_;
  bool mounted_ = false;
};

TEST(DiskFull, NothingIsLostAndTheRunGoesOnWhenThereIsRoom) {
  // Enough rounds for the disk to be full before the end: one takes 20 ms.
  auto created = Cluster::Create(TinyConfig({.workers = 2, .rounds = 400}));
  ASSERT_TRUE(created.ok()) << created.status();
  Cluster& cluster = **created;
  const SmallDisk checkpoint(cluster.PathOf("coordinator"));
  if (!checkpoint.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  ASSERT_TRUE(cluster.StartCoordinator().ok());
  ASSERT_TRUE(cluster.StartWorker("w0").ok());
  ASSERT_TRUE(cluster.StartWorker("w1").ok());
  const absl::Status started = cluster.WaitForVersion(2, Seconds(60));
  ASSERT_TRUE(started.ok()) << started;
  checkpoint.Fill();
  const absl::Status failing =
      cluster.WaitUntil("a clear error in the status", Seconds(60),
                        [](const auto& status) { return !status.storage_error().empty(); });
  const auto full = cluster.Status();
  ASSERT_TRUE(failing.ok()) << failing;
  ASSERT_TRUE(full.ok());
  EXPECT_THAT(full->storage_error(), ::testing::HasSubstr("is full"));
  const uint64_t head = full->fragments(0).version();
  EXPECT_TRUE(cluster.coordinator().running());
  checkpoint.Free();
  const absl::Status finished = cluster.WaitForFinish(Seconds(90));
  ASSERT_TRUE(finished.ok()) << finished;
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok());
  EXPECT_GE(status->fragments(0).version(), head);
  EXPECT_EQ(status->committed_tokens(), status->total_tokens());
  EXPECT_TRUE(status->storage_error().empty()) << status->storage_error();
}

}  // namespace
}  // namespace atl
