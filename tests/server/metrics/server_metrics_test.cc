#include "server/metrics/server_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/program_metrics.h"
#include "server/metrics/launcher_metrics.h"
#include "server/metrics/status_metrics.h"
#include "tests/fakes/promtool.h"

namespace atl {
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

TEST(LauncherMetricsTest, SaysWhatIsWantedAndWhetherItFails) {
  MetricsRegistry registry;
  LauncherMetrics metrics(&registry);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_launcher_failing 0\n"));
  LauncherView view{.kind = "kubernetes", .target = 3, .workers = {}, .error = ""};
  view.workers.push_back({.name = "w0", .state = LaunchedWorker::State::kRunning});
  view.workers.push_back({.name = "w1", .state = LaunchedWorker::State::kWaiting});
  metrics.Refresh(view);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_launcher_workers_wanted 3\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_launcher_workers_running 1\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_launcher_failing 0\n"));
  // They have a process too, as `atollctl launcher` counts them.
  view.workers.push_back({.name = "w2", .state = LaunchedWorker::State::kDraining});
  view.workers.push_back({.name = "w3", .state = LaunchedWorker::State::kStopping});
  view.workers.push_back({.name = "w4", .state = LaunchedWorker::State::kDrained});
  metrics.Refresh(view);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_launcher_workers_running 3\n"));
  view.error = "403: cannot patch statefulsets/scale";
  metrics.Refresh(view);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_launcher_failing 1\n"));
}

/// Everything that a coordinator can say, once.
void SayEverything(ServerMetrics& metrics) {
  RoundSummaryView round;
  round.open_seconds = 2;
  round.tokens = 1000;
  round.contributions = 4;
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
  metrics.OnRunState(RunState::kTraining);
  metrics.OnVersion(FragmentId(0), Version(7), Version(6));
  metrics.OnCommittedTokens(1000, 50000);
  metrics.OnStorageFailing(true);
  metrics.OnMergedNorms(std::vector<double>{1, 2, 0, 8}, /*guarded=*/true);
  metrics.OnContributionBudget(100, 400);
  metrics.OnConfirmation("diverged");
  metrics.OnEvent(EventKind::kRoundClosed);
  metrics.OnEvent(EventKind::kRoundClosed);
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
  // From the start, so that increase() sees the first of them.
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_contributions_total{result=\"not_finite\"} 0\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_events_total{kind=\"worker_lost\"} 0\n"));
  SayEverything(metrics);
  const std::string text = registry.Text();
  for (const char* line : {"atoll_rounds_total 1\n",
                           "atoll_round_tokens_total 1000\n",
                           "atoll_round_duration_seconds_sum 2\n",
                           "atoll_round_contributions_total 4\n",
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
                           "atoll_confirmations_total{verdict=\"diverged\"} 1\n",
                           "atoll_contribution_norm_ratio_bucket{le=\"3\"} 3\n",
                           "atoll_contribution_norm_ratio_sum 5.5\n",
                           "atoll_norm_guard_scaled_total 1\n",
                           "atoll_contribution_in_flight_bytes 100\n",
                           "atoll_contribution_budget_bytes 400\n",
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
  metrics.OnRunState(RunState::kPaused);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_state{state=\"paused\"} 1\n"));
  metrics.OnNewestCheckpoint(1'700'000'000'500'000'000);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_last_checkpoint_timestamp_seconds 1700000000.5\n"));
  metrics.OnContribution("something new");
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_contributions_total{result=\"other\"} 1\n"));
  metrics.OnRunState(RunState::kFinished);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_state{state=\"training\"} 0\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_state{state=\"finished\"} 1\n"));
}

TEST(MemberMetricsTest, AWorkersSeriesGoWithTheWorker) {
  MetricsRegistry registry;
  MemberMetrics metrics(&registry);
  metrics.Refresh({WorkerNamed("a", 10), WorkerNamed("b", 20)});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_member_tokens_per_second{worker=\"a\"} 10\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_member_base_version{worker=\"b\"} 3\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_member_recent_offences{worker=\"a\"} 0\n"));
  metrics.Refresh({WorkerNamed("b", 30)});
  EXPECT_THAT(registry.Text(), Not(HasSubstr("worker=\"a\"")));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_member_tokens_per_second{worker=\"b\"} 30\n"));
  metrics.Refresh({WorkerNamed("a", 5), WorkerNamed("b", 30)});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_member_tokens_per_second{worker=\"a\"} 5\n"));
  metrics.Refresh({});
  EXPECT_THAT(registry.Text(), Not(HasSubstr("worker=")));
}

TEST(MemberMetricsTest, OnePhaseAtATimeAndCountersThatBeginAnewWithTheWorker) {
  MetricsRegistry registry;
  MemberMetrics metrics(&registry);
  WorkerView worker = WorkerNamed("a", 10);
  worker.role = 1;
  worker.progress.phase = WorkerPhase::kTraining;
  worker.progress.training[TimeUse::kCompute] = 90;
  worker.contributions_refused = 2;
  metrics.Refresh({worker});
  const std::string phase = "atoll_member_phase{phase=\"training\",role=\"trainer\",worker=\"a\"} 1\n";
  EXPECT_THAT(registry.Text(), HasSubstr(phase));
  EXPECT_THAT(registry.Text(),
              HasSubstr("atoll_member_time_seconds_total{use=\"compute\",worker=\"a\"} 90\n"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("atoll_member_contributions_total{result=\"refused\",worker=\"a\"} 2\n"));
  worker.progress.phase = WorkerPhase::kPushing;
  worker.progress.training[TimeUse::kCompute] = 4;  // its process was started again
  metrics.Refresh({worker});
  EXPECT_THAT(registry.Text(), Not(HasSubstr(phase)));
  EXPECT_THAT(registry.Text(), HasSubstr("phase=\"pushing\""));
  EXPECT_THAT(registry.Text(),
              HasSubstr("atoll_member_time_seconds_total{use=\"compute\",worker=\"a\"} 4\n"));
}

TEST(MemberMetricsTest, WhatIsNotKnownHasNoSeries) {
  MetricsRegistry registry;
  MemberMetrics metrics(&registry);
  WorkerView worker = WorkerNamed("a", 10);
  metrics.Refresh({worker});
  EXPECT_THAT(registry.Text(), Not(HasSubstr("atoll_member_train_loss{")));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("atoll_member_exchange_time_seconds_total{")));
  worker.progress.loss = 2.5;
  worker.progress.exchanges[TimeUse::kPush] = 8;
  metrics.Refresh({worker});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_member_train_loss{worker=\"a\"} 2.5\n"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("atoll_member_exchange_time_seconds_total{use=\"push\",worker=\"a\"} 8\n"));
  worker.progress.loss = 0;  // another life
  metrics.Refresh({worker});
  EXPECT_THAT(registry.Text(), Not(HasSubstr("atoll_member_train_loss{")));
}

TEST(StatusMetricsTest, ALossThatIsNotToldIsNotZero) {
  MetricsRegistry registry;
  StatusMetrics metrics(&registry);
  StatusView status;
  status.rounds.resize(1);  // of a run with privacy
  metrics.Refresh(status, {});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_train_loss Nan\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_run_eta_seconds Nan\n"));
}

TEST(StatusMetricsTest, ShowsTheRunItsRoundsAndItsDisk) {
  MetricsRegistry registry;
  StatusMetrics metrics(&registry);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_train_loss Nan\n"));  // not known, rather than 0
  StatusView status;
  status.run_id = "abc";
  status.run_name = "tiny";
  status.learning_rate = 0.001;
  status.push_bytes = 100;
  status.data_parallel_bytes = 5000;
  status.data_directory = "/tmp";
  status.rounds.resize(1);
  status.rounds[0].train_loss = 1.25;
  status.evaluations = {{.version = Version(7), .loss = 1.5, .tokens = 10}};
  FragmentStatusView fragment;
  fragment.open_seconds = 42;
  fragment.deadline_seconds = 600;
  fragment.quorum = 3;
  fragment.arrived = {"a"};
  fragment.missing = {"b", "c"};
  status.fragments = {fragment};
  metrics.Refresh(status, {});
  const std::string text = registry.Text();
  for (const char* line :
       {"atoll_run_info{run_id=\"abc\",run_name=\"tiny\"} 1\n", "atoll_learning_rate 0.001\n",
        "atoll_train_loss 1.25\n", "atoll_validation_loss 1.5\n",
        "atoll_exchanged_bytes_total{direction=\"push\"} 100\n", "atoll_data_parallel_bytes_total 5000\n",
        "atoll_round_open_seconds{fragment=\"0\"} 42\n", "atoll_round_deadline_seconds{fragment=\"0\"} 600\n",
        "atoll_round_arrived_contributions{fragment=\"0\"} 1\n",
        "atoll_round_expected_contributions{fragment=\"0\"} 3\n",
        "atoll_round_quorum_contributions{fragment=\"0\"} 3\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  status.rounds[0].train_loss = -1.25;
  metrics.Refresh(status, {});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_train_loss -1.25\n"));
  status.rounds[0].train_loss = 0;
  metrics.Refresh(status, {});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_train_loss Nan\n"));
  EXPECT_THAT(text, Not(HasSubstr("atoll_disk_free_bytes Nan")));
  EXPECT_THAT(text, HasSubstr("atoll_privacy_epsilon{seen=\"pushes\"} Nan\n"));
  status.privacy = PrivacyView{.options = {}, .epsilon = 1.5, .published_epsilon = std::nullopt};
  status.data_directory = "/nowhere/at/all";
  metrics.Refresh(status, {});
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_privacy_epsilon{seen=\"pushes\"} 1.5\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_privacy_epsilon{seen=\"published\"} Nan\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_disk_free_bytes Nan\n"));
}

TEST(ServerMetricsTest, NamesFollowPrometheussConventions) {
  if (!HavePromtool()) GTEST_SKIP() << "promtool is not installed";
  MetricsRegistry registry;
  AddProgramMetrics(&registry, "atoll-coordinator");
  ServerMetrics metrics(&registry);
  SayEverything(metrics);
  StatusMetrics status_metrics(&registry);
  StatusView status;
  status.fragments.resize(1);
  status_metrics.Refresh(status, {WorkerNamed("a", 10)});
  EXPECT_EQ(PromtoolComplaints(registry.Text()), "");
}

}  // namespace
}  // namespace atl
