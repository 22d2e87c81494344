#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/file.h"
#include "tests/common/file_tree.h"
#include "tests/common/test_dir.h"
#include "tests/integration/crash/synthetic_worker.h"
#include "tests/integration/crash/victim.h"

// The real coordinator on a data directory that was damaged while it was stopped. The breadth is in
// tests/storage/damage_test.cc.

namespace atl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

class DamagedRunTest : public testing::Test {
 protected:
  /// A run of some versions, killed between two rounds.
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(dir_.path() + "/run.yaml", run_.yaml).ok());
    ASSERT_TRUE(victim_.Start("").ok()) << victim_.log();
    Promises promises;
    std::vector<std::unique_ptr<SyntheticWorker>> workers;
    for (uint32_t i = 0; i < kCrashWorkers; ++i) {
      workers.push_back(std::make_unique<SyntheticWorker>(&run_, &promises, victim_.data_address(), i));
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (promises.head() < Version(5)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << victim_.log();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    victim_.Kill();
    workers.clear();
    fs::copy(victim_.data_dir(), dir_.path() + "/killed", fs::copy_options::recursive);
  }

  std::string OnlyFile(const std::string& folder, const std::string& ending) const {
    const std::vector<std::string> names = ListDir(JoinPath(victim_.data_dir(), folder)).value();
    for (const std::string& name : names) {
      if (name.ends_with(ending)) return JoinPath(JoinPath(victim_.data_dir(), folder), name);
    }
    ADD_FAILURE() << "no " << ending << " in " << folder;
    return "";
  }
  void Flip(const std::string& path, size_t at) {
    std::string bytes = ReadFile(path).value();
    ASSERT_GT(bytes.size(), at);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  void Heal() {
    fs::remove_all(victim_.data_dir());
    fs::copy(dir_.path() + "/killed", victim_.data_dir(), fs::copy_options::recursive);
  }

  void IsRejected(const std::string& file, const std::function<void()>& damage) {
    Heal();
    damage();
    const auto before = TreeOf(victim_.data_dir());
    const absl::Status started = victim_.Start("");
    EXPECT_THAT(started.ToString(),
                AllOf(HasSubstr("ended with 4"), HasSubstr(file), HasSubstr("Nothing was changed")));
    EXPECT_TRUE(TreeOf(victim_.data_dir()) == before) << "changed: " << started;
  }

  const TestDir dir_;
  const SyntheticRun run_ = SyntheticRun::Make(5);
  Victim victim_{dir_.path()};
};

TEST_F(DamagedRunTest, AStartRejectsWithExitCodeFourAndChangesNothing) {
  const std::string log = fs::path(OnlyFile("meta", ".log")).filename().string();
  for (const size_t at : {50, 159, 1000, 1059}) {
    IsRejected(log, [&] { Flip(OnlyFile("meta", ".log"), at); });
  }
  IsRejected("write-ahead log", [&] { ASSERT_TRUE(RemoveFile(OnlyFile("meta", ".log")).ok()); });
  IsRejected("records were lost", [&] { fs::resize_file(OnlyFile("meta", ".log"), 0); });
  IsRejected("meta/CURRENT", [&] { ASSERT_TRUE(RemoveAll(victim_.data_dir() + "/meta").ok()); });
  IsRejected("meta/CURRENT", [&] { ASSERT_TRUE(RemoveFile(victim_.data_dir() + "/meta/CURRENT").ok()); });
  IsRejected("shards/00/CURRENT",
             [&] { ASSERT_TRUE(RemoveFile(victim_.data_dir() + "/shards/00/CURRENT").ok()); });
  Heal();
  EXPECT_TRUE(victim_.Start("").ok()) << victim_.log();
  EXPECT_EQ(victim_.Stop(), 0);
}

TEST_F(DamagedRunTest, ACheckpointIsNotServedAmongThoseOfItsRun) {
  Heal();
  const std::string checkpoint = victim_.data_dir() + "/checkpoints/auto-v3";
  ASSERT_TRUE(FileExists(checkpoint)) << "the run makes one of version 3";
  const auto before = TreeOf(victim_.data_dir());
  Victim second(dir_.path() + "/second", {"--data-dir", checkpoint});
  ASSERT_TRUE(CreateDirs(dir_.path() + "/second").ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.path() + "/second/run.yaml", run_.yaml).ok());
  EXPECT_THAT(second.Start("").ToString(), AllOf(HasSubstr("ended with 2"), HasSubstr("Copy the folder")));
  EXPECT_TRUE(TreeOf(victim_.data_dir()) == before);
}

}  // namespace
}  // namespace atl
