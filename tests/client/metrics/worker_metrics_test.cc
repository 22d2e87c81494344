#include "client/metrics/worker_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/program_metrics.h"
#include "tests/fakes/promtool.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// Everything that a worker can say, once.
void SayEverything(WorkerMetrics& metrics) {
  metrics.OnJoined(JoinedRun(), false);
  metrics.OnJoined(JoinedRun(), true);
  metrics.OnPhase(WorkerPhase::kPulling);
  metrics.OnPulled(FragmentId(0), Version(3), 1000, Seconds(4), Seconds(0.5));
  metrics.OnPhase(WorkerPhase::kTraining);
  metrics.OnInnerStep({.loss = 2.5, .gradient_norm = 0.75, .tokens = 64}, 0.001, Seconds(0.25));
  metrics.OnInnerStep({.loss = 2.25, .gradient_norm = 0.5, .tokens = 64}, 0.002, Seconds(0.25));
  metrics.OnPushed(FragmentId(0), PushResultKind::kAccepted, 2000, Seconds(1));
  metrics.OnPushed(FragmentId(0), PushResultKind::kDropped, 0, Seconds(0));
  metrics.OnRound(2, 128, 2.375, Seconds(2));
  metrics.OnRoundNotFinite();
  metrics.OnEvaluated({.version = Version(3), .loss = 2.125, .tokens = 640}, Seconds(3));
  metrics.OnHeartbeat(true, Seconds(0.01));
  metrics.OnRetry(absl::UnavailableError("away"), Seconds(1));
  metrics.OnWaited(Seconds(7));
  TimeSpent training;
  training[TimeUse::kOverdue] = 11;
  TimeSpent exchanges;
  exchanges[TimeUse::kIdle] = 13;
  metrics.SetTimes(training, exchanges);
}

TEST(WorkerMetricsTest, EverythingThatIsSaidIsShown) {
  MetricsRegistry registry;
  WorkerMetrics metrics(&registry);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_loss Nan\n"));  // not known, rather than 0
  SayEverything(metrics);
  const std::string text = registry.Text();
  for (const char* line : {"atoll_worker_joins_total{kind=\"first\"} 1\n",
                           "atoll_worker_joins_total{kind=\"again\"} 1\n",
                           "atoll_worker_phase{phase=\"training\"} 1\n",
                           "atoll_worker_phase{phase=\"pulling\"} 0\n",
                           "atoll_worker_base_version{fragment=\"0\"} 3\n",
                           "atoll_worker_pull_received_bytes_total 1000\n",
                           "atoll_worker_pull_duration_seconds_sum 0.5\n",
                           "atoll_worker_inner_steps_total 2\n",
                           "atoll_worker_tokens_total 128\n",
                           "atoll_worker_compute_seconds_total 0.5\n",
                           "atoll_worker_loss 2.25\n",
                           "atoll_worker_gradient_norm 0.5\n",
                           "atoll_worker_learning_rate 0.002\n",
                           "atoll_worker_contributions_total{result=\"accepted\"} 1\n",
                           "atoll_worker_contributions_total{result=\"dropped\"} 1\n",
                           "atoll_worker_contributions_total{result=\"refused\"} 0\n",
                           "atoll_worker_push_sent_bytes_total 2000\n",
                           "atoll_worker_push_duration_seconds_count 1\n",
                           "atoll_worker_exchange_seconds_total 1.5\n",
                           "atoll_worker_rounds_total 1\n",
                           "atoll_worker_round_loss 2.375\n",
                           "atoll_worker_rounds_not_finite_total 1\n",
                           "atoll_worker_validation_loss 2.125\n",
                           "atoll_worker_evaluate_seconds_total 3\n",
                           "atoll_worker_heartbeats_total{result=\"ok\"} 1\n",
                           "atoll_worker_connected 1\n",
                           "atoll_worker_retries_total{code=\"UNAVAILABLE\"} 1\n",
                           "atoll_worker_wait_seconds_total 7\n",
                           "atoll_worker_training_time_seconds_total{use=\"overdue\"} 11\n",
                           "atoll_worker_exchange_time_seconds_total{use=\"idle\"} 13\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  metrics.OnHeartbeat(false, Seconds(1));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_connected 0\n"));
}

TEST(WorkerMetricsTest, NamesFollowPrometheussConventions) {
  if (!HavePromtool()) GTEST_SKIP() << "promtool is not installed";
  MetricsRegistry registry;
  AddProgramMetrics(&registry, "atoll-worker");
  WorkerMetrics metrics(&registry);
  SayEverything(metrics);
  EXPECT_EQ(PromtoolComplaints(registry.Text()), "");
}

}  // namespace
}  // namespace atl
