#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "common/durable_file.h"
#include "common/file.h"
#include "core/safetensors.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/common/test_dir.h"
#include "tests/integration/crash/serial_model.h"
#include "tests/integration/crash/synthetic_worker.h"
#include "tests/integration/crash/victim.h"

// The real coordinator on a directory that was brought from elsewhere.

namespace atl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RestoreTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(CreateDirs(home()).ok());
    ASSERT_TRUE(CreateDirs(elsewhere()).ok());
    ASSERT_TRUE(WriteFileAtomically(home() + "/run.yaml", run_.yaml).ok());
    ASSERT_TRUE(WriteFileAtomically(elsewhere() + "/run.yaml", run_.yaml).ok());
  }
  std::string home() const { return dir_.path() + "/home"; }
  std::string elsewhere() const { return dir_.path() + "/elsewhere"; }

  /// Rounds until this version is published, by workers of their own.
  void TrainTo(Victim& victim, uint64_t version) {
    Promises promises;
    std::vector<std::unique_ptr<SyntheticWorker>> workers;
    for (uint32_t i = 0; i < kCrashWorkers; ++i) {
      workers.push_back(std::make_unique<SyntheticWorker>(&run_, &promises, victim.data_address(), i));
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (promises.head() < Version(version)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << victim.log();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    for (const auto& worker : workers) EXPECT_EQ(worker->complaint(), "");
  }
  /// The automatic checkpoint of version 3, in the place of a data directory.
  void CopyCheckpoint(Victim& victim) {
    TrainTo(victim, 5);
    const std::string checkpoint = victim.data_dir() + "/checkpoints/auto-v3";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!FileExists(checkpoint + "/checkpoint.json")) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << victim.log();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::filesystem::copy(checkpoint, elsewhere() + "/data", std::filesystem::copy_options::recursive);
  }

  /// No member of the checkpoint may be live after the first start on its copy.
  static void ExpectNoMembers(const Recovery& recovery) {
    EXPECT_EQ(recovery.workers.size(), kCrashWorkers);
    for (const WorkerEntry& worker : recovery.workers) EXPECT_TRUE(worker.departed) << worker.name;
  }

  const TestDir dir_;
  const SyntheticRun run_ = SyntheticRun::Make(3);
};

TEST_F(RestoreTest, ACopiedCheckpointGoesOnElsewhereUnderANewEpoch) {
  Victim home_victim(home());
  ASSERT_TRUE(home_victim.Start("").ok());
  CopyCheckpoint(home_victim);
  Victim victim(elsewhere());
  const absl::Status started = victim.Start("");
  ASSERT_TRUE(started.ok()) << started;
  TrainTo(victim, 7);
  EXPECT_EQ(victim.Stop(), 0);
  EXPECT_EQ(home_victim.Stop(), 0);
  const auto there = Inspect(home_victim.data_dir());
  const auto here = Inspect(victim.data_dir());
  ASSERT_TRUE(here.ok() && here->has_value()) << here.status();
  const Recovery& recovery = (*here)->recovery;
  EXPECT_NE(recovery.identity.epoch, (*there)->recovery.identity.epoch);
  EXPECT_EQ(recovery.identity.run_id, (*there)->recovery.identity.run_id);
  SerialModel model(run_);
  const absl::Status same =
      model.Follow(recovery.rounds, {{"auto-v3", Version((*there)->checkpoints.at("auto-v3"))}}, {});
  EXPECT_TRUE(same.ok()) << same;
  EXPECT_GE(model.head(), Version(7));
}

TEST_F(RestoreTest, TheMembersOfACopiedCheckpointAreGoneAfterEveryStart) {
  Victim home_victim(home());
  ASSERT_TRUE(home_victim.Start("").ok());
  CopyCheckpoint(home_victim);
  const auto copied = Inspect(elsewhere() + "/data");
  ASSERT_TRUE(copied.ok() && copied->has_value()) << copied.status();
  EXPECT_TRUE(std::ranges::none_of((*copied)->recovery.workers, &WorkerEntry::departed));
  Victim victim(elsewhere());
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(victim.Start("").ok()) << victim.log();
    EXPECT_EQ(victim.Stop(), 0);
    const auto remains = Inspect(victim.data_dir());
    ASSERT_TRUE(remains.ok() && remains->has_value()) << remains.status();
    ExpectNoMembers((*remains)->recovery);
  }
}

TEST_F(RestoreTest, ACrashWhileItsEpochBeginsChangesNothing) {
  Victim home_victim(home());
  ASSERT_TRUE(home_victim.Start("").ok());
  CopyCheckpoint(home_victim);
  Victim victim(elsewhere());
  for (const char* fault : {"epoch.ready:1", "epoch.recorded:1"}) {
    ASSERT_TRUE(victim.Start(fault).ok());
    EXPECT_TRUE(victim.AwaitDeath(Seconds(10))) << fault;
  }
  ASSERT_TRUE(victim.Start("").ok()) << victim.log();
  EXPECT_EQ(victim.Stop(), 0);
  const auto remains = Inspect(victim.data_dir());
  ASSERT_TRUE(remains.ok() && remains->has_value());
  int restores = 0;
  for (const RoundRecord& record : (*remains)->recovery.rounds)
    restores += record.contributions.empty() ? 1 : 0;
  EXPECT_EQ(restores, 1) << "the epoch began once";
  ExpectNoMembers((*remains)->recovery);
}

TEST_F(RestoreTest, AStartAfterACrashInARestoreSaysWhatBecameOfIt) {
  Victim victim(home());
  ASSERT_TRUE(victim.Start("").ok());
  CopyCheckpoint(victim);
  EXPECT_EQ(victim.Stop(), 0);
  struct Case {
    const char* fault;
    const char* said;
  };
  for (const Case& c : {Case{"epoch.ready:1", "`atollctl checkpoint restore auto-v3` again"},
                        Case{"epoch.recorded:1", "a restore, which is complete"}}) {
    ASSERT_TRUE(victim.Start(c.fault).ok()) << victim.log();
    EXPECT_FALSE(victim.Restore("auto-v3").ok());
    ASSERT_TRUE(victim.AwaitDeath(Seconds(30))) << c.fault;
    ASSERT_TRUE(victim.Start("").ok()) << victim.log();
    EXPECT_THAT(victim.log(), HasSubstr(c.said));
    EXPECT_EQ(victim.Stop(), 0);
  }
  // Said once each, and not at all of a restore that was reported.
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(victim.Start("").ok()) << victim.log();
    ASSERT_TRUE(victim.Restore("auto-v3").ok());
    EXPECT_FALSE(FileExists(victim.data_dir() + "/restore.begun"));
    EXPECT_EQ(victim.Stop(), 0);
  }
  const std::string whole = ReadFile(home() + "/coordinator.log").value_or("");
  size_t said = 0;
  for (size_t at = whole.find("a restore, which"); at != std::string::npos;
       at = whole.find("a restore, which", at + 1))
    ++said;
  EXPECT_EQ(said, 2u);
}

TEST_F(RestoreTest, ADamagedCheckpointIsRejectedNamingTheFile) {
  Victim home_victim(home());
  ASSERT_TRUE(home_victim.Start("").ok());
  CopyCheckpoint(home_victim);
  std::string damaged;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(elsewhere() + "/data/shards")) {
    if (entry.path().extension() == ".sst") damaged = entry.path().string();
  }
  auto file = DurableFile::Open(damaged, OpenMode::kOpenExisting);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::byte flipped{0x5a};
  ASSERT_TRUE(file->WriteAt(*file->Size() / 2, {&flipped, 1}).ok());
  Victim victim(elsewhere());
  const absl::Status started = victim.Start("");
  EXPECT_FALSE(started.ok());
  EXPECT_THAT(started.ToString(), HasSubstr(std::filesystem::path(damaged).filename().string()));
  EXPECT_THAT(started.ToString(), HasSubstr("ended with 4"));
}

TEST_F(RestoreTest, ARunBeginsFromAFile) {
  const std::string path = dir_.File("model.safetensors");
  std::string text = SafetensorsHeader(run_.manifest, {});
  for (const TensorSlot& slot : run_.layout.slots) {  // in the order of the manifest: there is one fragment
    const auto bytes = std::as_bytes(std::span(run_.seed).subspan(slot.offset, slot.elements));
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  Victim victim(home(), {"--import", path});
  for (int life = 0; life < 2; ++life) {  // a supervisor keeps the flag
    const absl::Status started = victim.Start("");
    ASSERT_TRUE(started.ok()) << started;
    TrainTo(victim, 2 + 2 * static_cast<uint64_t>(life));
    EXPECT_EQ(victim.Stop(), 0);
  }
  const auto remains = Inspect(victim.data_dir());
  ASSERT_TRUE(remains.ok() && remains->has_value()) << remains.status();
  SerialModel model(run_);
  const absl::Status same = model.Follow((*remains)->recovery.rounds, {}, {});
  EXPECT_TRUE(same.ok()) << same;
  EXPECT_GE(model.head(), Version(4));
  // Another model than the configuration's: nothing is begun.
  text[text.find("ln_f")] = 'x';
  ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  Victim other(elsewhere(), {"--import", path});
  EXPECT_THAT(other.Start("").ToString(),
              AllOf(HasSubstr("ended with 2"), HasSubstr("tensor 'transformer.ln_f.weight' is missing")));
}

}  // namespace
}  // namespace atl
