// Two workers and a coordinator over real gRPC in one process: the rounds are those of direct computation.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/fragment_plan.h"
#include "gtest/gtest.h"
#include "server/admin/admin_control.h"
#include "tests/integration/island.h"

namespace atl {
namespace {

constexpr int kRounds = 5;
constexpr int kInnerSteps = 4;
constexpr double kOuterRate = 0.7;
constexpr double kMomentum = 0.9;

std::string RunYaml(const std::string& push_codec, const std::string& pull_delta = "none") {
  return "run: {name: rounds-test, workers: 2, rounds: 5}\n"
         "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
         "data: {tokenizer: bytes, mode: shared}\n"
         "inner: {steps: 4, learning_rate: 0.1, min_learning_rate_ratio: 1, batch: 3}\n"
         "outer: {learning_rate: 0.7, momentum: 0.9}\n"
         "round: {deadline_s: 60, lease_s: 5}\n"
         "codec: {push: " +
         push_codec + ", pull_delta: " + pull_delta + "}\n";
}

/// One parameter of the run, computed by hand: the mean of two workers' pseudo-gradients, then PyTorch's
/// SGD(nesterov=True).
float DirectComputation(float theta, float target_a, float target_b) {
  float velocity = 0;
  for (int round = 0; round < kRounds; ++round) {
    float mean = 0;
    for (const float target : {target_a, target_b}) {
      float local = theta;
      for (int i = 0; i < kInnerSteps; ++i) local -= 0.1F * (local - target);
      mean += (theta - local) / 2;
    }
    velocity = static_cast<float>(kMomentum) * velocity + mean;
    theta -= static_cast<float>(kOuterRate) * (mean + static_cast<float>(kMomentum) * velocity);
  }
  return theta;
}

class RoundsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundsTest, AreThoseOfDirectComputation) {
  Island island(RunYaml(GetParam()));
  WorkerThread a(island, "worker-a", 3.0F);
  WorkerThread b(island, "worker-b", 7.0F);
  const WorkerEnd end_a = a.Join();
  const WorkerEnd end_b = b.Join();
  EXPECT_EQ(end_a.code, ExitCode::kOk) << end_a.status;
  EXPECT_EQ(end_b.code, ExitCode::kOk) << end_b.status;

  const float expected = DirectComputation(1.0F, 3.0F, 7.0F);
  const float tolerance = std::string(GetParam()) == "fp32" ? 1e-5F : 0.02F;
  EXPECT_NEAR(a.replica().first(), expected, tolerance);
  EXPECT_EQ(a.replica().first(), b.replica().first()) << "both hold the published bits";
  EXPECT_EQ(a.replica().steps, static_cast<uint64_t>(kRounds * kInnerSteps));
  const StatusView status = island.coordinator().GetStatus(100);
  EXPECT_EQ(status.state, RunState::kFinished);
  ASSERT_EQ(status.fragments.size(), 1u);
  EXPECT_EQ(status.fragments[0].version, Version(kRounds));
  EXPECT_EQ(status.evaluations.size(), static_cast<size_t>(kRounds + 1));
  for (const WorkerView& worker : island.coordinator().ListWorkers(true)) EXPECT_EQ(worker.state, "left");
}

INSTANTIATE_TEST_SUITE_P(Codecs, RoundsTest,
                         ::testing::Values("fp32", "bf16", "int8", "int4", "e3m0", "int8_quantile"),
                         [](const auto& test) { return std::string(test.param); });

TEST(RoundsTest, FollowersByDifferencesHoldThePublishedBits) {
  Island island(RunYaml("fp32", "int8"));
  WorkerThread a(island, "worker-a", 3.0F);
  WorkerThread b(island, "worker-b", 7.0F);
  EXPECT_EQ(a.Join().code, ExitCode::kOk);
  EXPECT_EQ(b.Join().code, ExitCode::kOk);
  EXPECT_NEAR(a.replica().first(), DirectComputation(1.0F, 3.0F, 7.0F), 0.02F);
  EXPECT_EQ(a.replica().first(), b.replica().first());
  const StatusView status = island.coordinator().GetStatus(100);
  EXPECT_EQ(status.state, RunState::kFinished);
  // Version 0 in full and five differences, with framing; all of them in full would be more.
  const uint64_t values = PlanFragments(a.replica().manifest(), 1)->front().elements;
  for (const WorkerView& worker : island.coordinator().ListWorkers(true)) {
    EXPECT_LT(worker.pull_bytes, (kRounds + 1) * values * sizeof(float)) << worker.name;
    EXPECT_GT(worker.pull_bytes, values * (sizeof(float) + kRounds)) << worker.name;
  }
}

TEST(RoundsTest, PackedPullsAndPushesAreTheSameRounds) {
  for (const std::string delta : {"none", "int8"}) {
    Island island(RunYaml("fp32, zstd: true", delta));
    WorkerThread a(island, "worker-a", 3.0F);
    WorkerThread b(island, "worker-b", 7.0F);
    EXPECT_EQ(a.Join().code, ExitCode::kOk);
    EXPECT_EQ(b.Join().code, ExitCode::kOk);
    const bool exact = delta == "none";
    EXPECT_NEAR(a.replica().first(), DirectComputation(1.0F, 3.0F, 7.0F), exact ? 1e-5F : 0.02F);
    EXPECT_EQ(a.replica().first(), b.replica().first());
    // Two numbers many times over: next to nothing is left of a payload.
    const uint64_t values = PlanFragments(a.replica().manifest(), 1)->front().elements;
    const uint64_t unpacked = exact ? kRounds * values * sizeof(float) : values * (sizeof(float) + kRounds);
    for (const WorkerView& worker : island.coordinator().ListWorkers(true)) {
      EXPECT_LT(worker.pull_bytes, unpacked * 4 / 5) << delta;
    }
  }
}

TEST(RoundsTest, ACommandIsFollowedWhileTheNextVersionIsWaitedFor) {
  Island island(
      "run: {name: waits-test, workers: 2, rounds: 5}\n"
      "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
      "data: {tokenizer: bytes, mode: shared}\n"
      "inner: {steps: 200, learning_rate: 0.1, batch: 3}\n"
      "round: {deadline_s: 600, lease_s: 1.5}\n");
  WorkerThread quick(island, "worker-a", 3.0F);
  WorkerThread slow(island, "worker-b", 3.0F, Seconds(0.2));
  const auto waits = [&] {
    const ProgressReport progress = quick.worker_status().progress();
    return progress.step == 200 && progress.phase == WorkerPhase::kPulling;
  };
  while (!waits()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto begin = std::chrono::steady_clock::now();
  const auto told = island.coordinator().admin().ControlWorker(
      {.user = "ann", .peer = "test"},
      {.worker = "worker-a", .action = WorkerAction::kDrain, .reason = "test"});
  EXPECT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(quick.Join().code, ExitCode::kOk);
  // A heartbeat brings it within half a second; the poll it waits in has ten, the round forty.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Seconds(5));
  slow.Stop();
  EXPECT_EQ(slow.Join().code, ExitCode::kOk);
}

TEST(RoundsTest, AStoppedWorkerLeavesAndTheOtherFinishes) {
  Island island(RunYaml("fp32"));
  WorkerThread a(island, "worker-a", 3.0F);
  WorkerThread b(island, "worker-b", 3.0F);
  // Version 1 exists as soon as one of them has seen it.
  while (a.worker_status().progress().base < Version(1)) std::this_thread::yield();
  b.Stop();
  EXPECT_EQ(b.Join().code, ExitCode::kOk);
  const WorkerEnd end = a.Join();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_EQ(island.coordinator().GetStatus(0).state, RunState::kFinished);
}

struct OverlappedCase {
  const char* yaml;
  double least;  // that the first parameter is to reach, from 1 toward 5
};
class OverlappedRoundsTest : public ::testing::TestWithParam<OverlappedCase> {};

TEST_P(OverlappedRoundsTest, FourWorkersFinishTogether) {
  Island island(std::string("run: {name: streaming-test, workers: 4, rounds: 8}\n"
                            "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
                            "data: {tokenizer: bytes, mode: shared}\n"
                            "inner: {steps: 10, learning_rate: 0.05, min_learning_rate_ratio: 1, batch: 3}\n"
                            "round: {deadline_s: 60, lease_s: 5}\n"
                            "sync: {mode: overlapped, fragments: 2, delay_steps: 3}\n") +
                GetParam().yaml);
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (const char* name : {"worker-a", "worker-b", "worker-c", "worker-d"}) {
    workers.push_back(std::make_unique<WorkerThread>(island, name, 5.0F, Seconds(0.003)));
  }
  for (const auto& worker : workers) {
    const WorkerEnd end = worker->Join();
    EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  }
  const StatusView status = island.coordinator().GetStatus(100);
  EXPECT_EQ(status.state, RunState::kFinished);
  ASSERT_EQ(status.fragments.size(), 2u);
  EXPECT_GE(status.committed_tokens, status.total_tokens);
  // It ends with the version that spends the budget, and one more at most: of what was acknowledged by then.
  // How many steps those have depends on how busy the machine is.
  std::vector<uint64_t> committed;
  for (const RoundSummaryView& round : status.rounds) {
    if (round.fragment == FragmentId(0)) committed.push_back(round.committed_tokens);
  }
  ASSERT_GE(committed.size(), 3u);
  EXPECT_LT(committed[committed.size() - 3], status.total_tokens);
  for (const FragmentStatusView& fragment : status.fragments) EXPECT_GE(fragment.version, Version(3));
  ASSERT_FALSE(status.evaluations.empty());
  EXPECT_EQ(status.evaluations.back().version, status.fragments[0].version);
  // The fakes' evaluation is their first parameter: on its way from 1 to the target.
  EXPECT_GT(status.evaluations.back().loss, GetParam().least);
}

INSTANTIATE_TEST_SUITE_P(Int8, OverlappedRoundsTest,
                         ::testing::Values(OverlappedCase{
                             "outer: {learning_rate: 0.7, momentum: 0.5}\n"
                             "codec: {push: int8, pull_delta: e3m0, zstd: true}\n",
                             3}));
// Few of the values travel in a round, and the first one is not always among them.
INSTANTIATE_TEST_SUITE_P(
    Sparse, OverlappedRoundsTest,
    ::testing::Values(OverlappedCase{"outer: {optimizer: sgd, learning_rate: 1}\n"
                                     "codec: {push: topk64, pull_delta: e3m0, error_feedback_beta: 0.95}\n",
                                     1.1},
                      OverlappedCase{"outer: {optimizer: sgd, learning_rate: 1}\n"
                                     "merge: {sparse_average: present}\n"
                                     "codec: {push: topk128, pull: bf16}\n",
                                     1.1}));

TEST(RoundsTest, TwoWorkersWithOneNameButAnotherSecret) {
  Island island(RunYaml("fp32"));
  WorkerThread a(island, "worker-a", 3.0F);
  while (island.coordinator().ListWorkers(false).empty()) std::this_thread::yield();
  GrpcConnection stranger({.address = island.address()}, MakeChannel({.address = island.address()}),
                          island.clock());
  JoinCall join{.worker = "worker-a", .secret = std::string(32, 'x')};
  join.dataset = DatasetSummary{"bytes", 256, 100000, std::string(64, 'a')};
  const auto rejected = stranger.Join(join);
  EXPECT_EQ(RejectionReasonOf(rejected.status()), RejectionReason::kNameTaken) << rejected.status();
  a.Stop();
  EXPECT_EQ(a.Join().code, ExitCode::kOk);
}

}  // namespace
}  // namespace atl
