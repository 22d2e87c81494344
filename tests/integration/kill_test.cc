// Two real workers and a real coordinator that is killed with SIGKILL in mid-run.

#include <signal.h>

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

// Rounds of a good part of a second, so that a kill finds a worker at every phase.
const TinyRun kSlow{.workers = 2,
                    .rounds = 6,
                    .inner_steps = 100,
                    .outer = "{optimizer: nesterov, learning_rate: 0.9, momentum: 0.5}"};
const TinyRun kTen{.workers = 2, .rounds = 10, .inner_steps = 100, .outer = kSlow.outer};

uint64_t Head(Cluster& cluster) {
  const auto status = cluster.Status();
  return status.ok() && status->fragments_size() > 0 ? status->fragments(0).version() : 0;
}

double FinalLoss(const v1::GetStatusReply& status) {
  return status.evaluations_size() == 0 ? 1e9 : status.evaluations(status.evaluations_size() - 1).loss();
}

TEST(Kill, TwoWorkersFinishThoughTheCoordinatorIsKilled) {
  auto cluster = Cluster::Create(TinyConfig(kSlow));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_TRUE((*cluster)->StartCoordinator().ok());
  ASSERT_TRUE((*cluster)->StartWorker("w0").ok());
  ASSERT_TRUE((*cluster)->StartWorker("w1").ok());
  const absl::Status second = (*cluster)->WaitForVersion(2, Seconds(60));
  ASSERT_TRUE(second.ok()) << second;
  const uint64_t before = Head(**cluster);
  (*cluster)->coordinator().Kill();
  const absl::Status restarted = (*cluster)->StartCoordinator();
  ASSERT_TRUE(restarted.ok()) << restarted;
  EXPECT_GE(Head(**cluster), before);
  const absl::Status finished = (*cluster)->WaitForFinish(Seconds(90));
  ASSERT_TRUE(finished.ok()) << finished;
  EXPECT_EQ((*cluster)->worker("w0").Wait(Seconds(20)), 0) << (*cluster)->Log("w0");
  EXPECT_EQ((*cluster)->worker("w1").Wait(Seconds(20)), 0) << (*cluster)->Log("w1");

  const auto status = (*cluster)->Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->committed_tokens(), status->total_tokens());
  EXPECT_LT(FinalLoss(*status), status->first_evaluation().loss() - 0.5);
  (*cluster)->coordinator().Signal(SIGTERM);
  EXPECT_EQ((*cluster)->coordinator().Wait(Seconds(30)), 0) << (*cluster)->Log("coordinator");
}

TEST(Kill, TenRandomKillsNeverTakeTheHeadBack) {
  TinyRun run = kSlow;
  run.rounds = 24;
  auto calm = Cluster::Create(TinyConfig(run));
  auto wild = Cluster::Create(TinyConfig(run));
  ASSERT_TRUE(calm.ok() && wild.ok());
  for (Cluster* cluster : {calm->get(), wild->get()}) {
    ASSERT_TRUE(cluster->StartCoordinator().ok());
    ASSERT_TRUE(cluster->StartWorker("w0").ok());
    ASSERT_TRUE(cluster->StartWorker("w1").ok());
  }
  std::mt19937 rng(20);
  uint64_t head = 0;
  for (int kill = 0; kill < 10; ++kill) {
    // The moment is random; a kill that waits for no progress at all would only test start-up.
    const absl::Status alive = (*wild)->WaitForVersion(head + (kill % 2), Seconds(60));
    ASSERT_TRUE(alive.ok()) << alive;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(rng() % 600);
    while (std::chrono::steady_clock::now() < deadline) head = std::max(head, Head(**wild));
    (*wild)->coordinator().Kill();
    const absl::Status restarted = (*wild)->StartCoordinator();
    ASSERT_TRUE(restarted.ok()) << "kill " << kill << ": " << restarted;
    EXPECT_GE(Head(**wild), head) << "kill " << kill;
  }
  for (Cluster* cluster : {calm->get(), wild->get()}) {
    const absl::Status finished = cluster->WaitForFinish(Seconds(150));
    ASSERT_TRUE(finished.ok()) << finished;
    EXPECT_EQ(cluster->worker("w0").Wait(Seconds(20)), 0) << cluster->Log("w0");
  }
  const auto calm_status = (*calm)->Status(), wild_status = (*wild)->Status();
  ASSERT_TRUE(calm_status.ok() && wild_status.ok());
  EXPECT_EQ(wild_status->committed_tokens(), calm_status->committed_tokens());
  EXPECT_NEAR(FinalLoss(*wild_status), FinalLoss(*calm_status), 0.05);
}

TEST(Kill, AKilledWorkerComesBackUnderItsName) {
  auto cluster = Cluster::Create(TinyConfig(kTen));
  ASSERT_TRUE(cluster.ok());
  ASSERT_TRUE((*cluster)->StartCoordinator().ok());
  ASSERT_TRUE((*cluster)->StartWorker("w0").ok());
  ASSERT_TRUE((*cluster)->StartWorker("w1").ok());
  ASSERT_TRUE((*cluster)->WaitForVersion(2, Seconds(60)).ok());
  (*cluster)->worker("w1").Kill();
  ASSERT_TRUE((*cluster)->WaitForVersion(Head(**cluster) + 1, Seconds(60)).ok());
  ASSERT_TRUE((*cluster)->StartWorker("w1").ok());
  const absl::Status finished = (*cluster)->WaitForFinish(Seconds(120));
  ASSERT_TRUE(finished.ok()) << finished;
  EXPECT_EQ((*cluster)->worker("w1").Wait(Seconds(20)), 0) << (*cluster)->Log("w1");
}

}  // namespace
}  // namespace atl
