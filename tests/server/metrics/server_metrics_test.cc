#include "server/metrics/server_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/status_metrics.h"
#include "tests/fakes/promtool.h"

namespace atoll {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

WorkerView WorkerNamed(const std::string& name, double tokens_per_second) {
  WorkerView worker;
  worker.name = name;
  worker.progress.tokens_per_second = tokens_per_second;
  worker.progress.base = Version(3);
  return worker;
}

/// Everything that a coordinator can say, once.
void SayEverything(ServerMetrics& metrics) {
  RoundSummaryView round;
  round.open_seconds = 2;
  round.tokens = 1000;
  round.train_loss = 1.25;
  metrics.OnRoundClosed(round);
  metrics.OnContribution("accepted");
  metrics.OnContribution("accepted");
  metrics.OnContribution("stale_base");
  metrics.OnPush(4096, 0.5);
  metrics.OnPullBytes(8192);
  metrics.OnPullStreamed(0.25);
  metrics.OnMergeSeconds(0.1);
  metrics.OnCommitSeconds(0.01);
  metrics.OnStoreSeconds(0.02);
  metrics.OnWorkers(4, 1, 2);
  metrics.OnRunState(RunStateView::kTraining);
  metrics.OnVersion(FragmentId(0), Version(7), Version(6));
  metrics.OnCommittedTokens(1000, 50000);
  metrics.OnStorageFailing(true);
  metrics.OnEvaluation({.version = Version(7), .loss = 1.5, .tokens = 10});
  metrics.OnEvent(EventKind::kRoundClosed);
  metrics.OnEvent(EventKind::kRoundClosed);
  metrics.OnEvent(EventKind::kReplicaDiverged);
  metrics.OnConfigVersion(3);
  metrics.OnLateContribution();
  metrics.OnOffence(Offence::kNorm);
  metrics.OnOffence(Offence::kNorm);
  metrics.OnOffence(Offence::kReplayed);
  metrics.OnBannedByRule();
  metrics.OnAdminAction("pause", true);
  metrics.OnAdminAction("pause", false);
  metrics.OnAdminAction("pause", false);
}

TEST(ServerMetricsTest, EverythingThatIsSaidIsShown) {
  MetricsRegistry registry;
  ServerMetrics metrics(&registry);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_train_loss Nan\n"));  // not known, rather than 0
  SayEverything(metrics);
  const std::string text = registry.Text();
  for (const char* line : {"atoll_rounds_total 1\n",
                           "atoll_round_tokens_total 1000\n",
                           "atoll_round_duration_seconds_sum 2\n",
                           "atoll_train_loss 1.25\n",
                           "atoll_contributions_total{result=\"accepted\"} 2\n",
                           "atoll_contributions_total{result=\"stale_base\"} 1\n",
                           "atoll_push_received_bytes_total 4096\n",
                           "atoll_push_duration_seconds_count 1\n",
                           "atoll_pull_sent_bytes_total 8192\n",
                           "atoll_pull_duration_seconds_sum 0.25\n",
                           "atoll_merge_duration_seconds_count 1\n",
                           "atoll_commit_duration_seconds_count 1\n",
                           "atoll_store_duration_seconds_count 1\n",
                           "atoll_workers{state=\"active_trainer\"} 4\n",
                           "atoll_workers{state=\"active_other\"} 1\n",
                           "atoll_workers{state=\"lost\"} 2\n",
                           "atoll_run_state{state=\"training\"} 1\n",
                           "atoll_run_state{state=\"starting\"} 0\n",
                           "atoll_published_version{fragment=\"0\"} 7\n",
                           "atoll_stored_version{fragment=\"0\"} 6\n",
                           "atoll_committed_tokens 1000\n",
                           "atoll_planned_tokens 50000\n",
                           "atoll_storage_failing 1\n",
                           "atoll_validation_loss 1.5\n",
                           "atoll_diverged_replicas_total 1\n",
                           "atoll_late_contributions_total 1\n",
                           "atoll_config_version 3\n",
                           "atoll_offences_total{kind=\"norm\"} 2\n",
                           "atoll_offences_total{kind=\"replayed\"} 1\n",
                           "atoll_offences_total{kind=\"direction\"} 0\n",
                           "atoll_workers_banned_by_rule_total 1\n",
                           "atoll_last_checkpoint_timestamp_seconds 0\n",
                           "atoll_admin_actions_total{action=\"pause\",result=\"done\"} 1\n",
                           "atoll_admin_actions_total{action=\"pause\",result=\"refused\"} 2\n",
                           "atoll_events_total{kind=\"round_closed\"} 2\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  metrics.OnRunState(RunStateView::kPaused);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_state{state=\"paused\"} 1\n"));
  metrics.OnEvent(EventKind::kCheckpointCreated);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("atoll_last_checkpoint_timestamp_seconds 0\n")));
  metrics.OnRunState(RunStateView::kFinished);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_state{state=\"training\"} 0\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_state{state=\"finished\"} 1\n"));
}

TEST(StatusMetricsTest, AWorkersSeriesGoWithTheWorker) {
  MetricsRegistry registry;
  StatusMetrics metrics(&registry);
  StatusView status;
  status.learning_rate = 0.001;
  metrics.Refresh(status, {WorkerNamed("a", 10), WorkerNamed("b", 20)});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_tokens_per_second{worker=\"a\"} 10\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_base_version{worker=\"b\"} 3\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_learning_rate 0.001\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_recent_offences{worker=\"a\"} 0\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_privacy_epsilon{seen=\"pushes\"} Nan\n"));
  status.privacy = PrivacyView{.options = {}, .epsilon = 1.5, .published_epsilon = std::nullopt};
  metrics.Refresh(status, {WorkerNamed("b", 30)});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_privacy_epsilon{seen=\"pushes\"} 1.5\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_privacy_epsilon{seen=\"published\"} Nan\n"));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("worker=\"a\"")));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_tokens_per_second{worker=\"b\"} 30\n"));
  metrics.Refresh(status, {WorkerNamed("a", 5), WorkerNamed("b", 30)});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_worker_tokens_per_second{worker=\"a\"} 5\n"));
}

TEST(ServerMetricsTest, NamesFollowPrometheussConventions) {
  if (!HavePromtool()) GTEST_SKIP() << "promtool is not installed";
  MetricsRegistry registry;
  AddBuildInfo(&registry, "atoll-coordinator");
  ServerMetrics metrics(&registry);
  SayEverything(metrics);
  StatusMetrics status_metrics(&registry);
  status_metrics.Refresh(StatusView(), {WorkerNamed("a", 10)});
  EXPECT_EQ(PromtoolComplaints(registry.Text()), "");
}

}  // namespace
}  // namespace atoll
