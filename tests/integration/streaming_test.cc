// Four real workers whose fragments are exchanged while they train (docs/reference/streaming.md).

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"

namespace atl {
namespace {

TinyRun Streaming(uint32_t fragments, const std::string& pattern) {
  TinyRun run{.workers = 4, .rounds = 8, .inner_steps = 20};
  run.outer = "{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}";
  run.codec = "{push: int8, pull_delta: none}";
  run.sync = "{mode: overlapped, fragments: " + std::to_string(fragments) + ", pattern: " + pattern +
             ", delay_steps: 2}";
  return run;
}

/// The run with all its workers until its end; whether a worker is killed with SIGKILL and comes back.
void Finishes(const TinyRun& run, bool kill) {
  auto cluster = Cluster::Create(TinyConfig(run));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_TRUE((*cluster)->StartCoordinator().ok());
  for (uint32_t i = 0; i < run.workers; ++i) {
    ASSERT_TRUE((*cluster)->StartWorker("w" + std::to_string(i)).ok());
  }
  const absl::Status second = (*cluster)->WaitForVersion(2, Seconds(120));
  ASSERT_TRUE(second.ok()) << second;
  if (kill) {
    (*cluster)->worker("w1").Kill();
    ASSERT_TRUE((*cluster)->StartWorker("w1").ok());
  }
  const absl::Status finished = (*cluster)->WaitForFinish(Seconds(240));
  ASSERT_TRUE(finished.ok()) << finished;
  for (uint32_t i = 0; i < run.workers; ++i) {
    const std::string name = "w" + std::to_string(i);
    EXPECT_EQ((*cluster)->worker(name).Wait(Seconds(30)), 0) << (*cluster)->Log(name);
  }
  const auto status = (*cluster)->Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_GE(status->committed_tokens(), status->total_tokens());
  ASSERT_GT(status->evaluations_size(), 1);
  EXPECT_LT(status->evaluations(status->evaluations_size() - 1).loss(),
            status->first_evaluation().loss() - 0.3);
  EXPECT_EQ(status->evaluations(status->evaluations_size() - 1).version(), status->fragments(0).version());
}

TEST(Streaming, FourWorkersFinishWithTwoStridedFragments) { Finishes(Streaming(2, "strided"), false); }

TEST(Streaming, FourWorkersFinishWithFourPackedFragmentsThoughOneIsKilled) {
  Finishes(Streaming(4, "packed"), true);
}

}  // namespace
}  // namespace atl
