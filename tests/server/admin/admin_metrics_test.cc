#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/membership.h"
#include "server/admin/metric_export.h"
#include "server/admin/metrics_view.h"
#include "tests/server/test_run.h"

// The run in numbers, now and over time.

namespace atl {
namespace {

using ::testing::IsSupersetOf;

TEST(LossSlopeTest, IsThatOfTheLineThroughThePoints) {
  std::vector<LossPoint> points;
  for (int i = 0; i < 10; ++i) {
    points.push_back({.million_tokens = 2.0 * i, .loss = 5 - 0.25 * 2.0 * i});
  }
  EXPECT_NEAR(LossSlope(points), -0.25, 1e-12);
  // numpy.polyfit([0, 1, 2, 4], [3, 2, 2.5, 1], 1)[0]
  const std::vector<LossPoint> scattered = {{0, 3}, {1, 2}, {2, 2.5}, {4, 1}};
  EXPECT_NEAR(LossSlope(scattered), -0.44285714285714284, 1e-12);
  EXPECT_EQ(LossSlope({}), 0);
  EXPECT_EQ(LossSlope(std::vector<LossPoint>{{1, 2}, {1, 3}}), 0);
}

TEST(ComputeUtilisationTest, IsThatOfTheLiveTrainersOrOfThoseThatWere) {
  WorkerView a;
  a.state = "active";
  a.role = static_cast<uint8_t>(WorkerRole::kTrainer);
  a.progress.training[TimeUse::kCompute] = 60;
  a.progress.training[TimeUse::kWait] = 30;
  a.progress.training[TimeUse::kPush] = 10;
  WorkerView watcher = a;
  watcher.role = static_cast<uint8_t>(WorkerRole::kObserver);
  WorkerView gone = a;
  gone.state = "left";
  gone.progress.training[TimeUse::kCompute] = 900;
  EXPECT_DOUBLE_EQ(ComputeUtilisation(std::vector<WorkerView>{a, watcher, gone}, 1e4), 0.6);
  EXPECT_DOUBLE_EQ(ComputeUtilisation(std::vector<WorkerView>{gone, watcher}, 1e4), 900.0 / 940);
  EXPECT_EQ(ComputeUtilisation({}, 1e4), 0);
  WorkerView boaster = a;
  boaster.progress.training[TimeUse::kCompute] = kLongestTimeSpent;
  EXPECT_NEAR(ComputeUtilisation(std::vector<WorkerView>{a, boaster}, 100), 0.8, 1e-6)
      << "one worker counts for no more than the run is old";
}

TEST(RunSecondsTest, EndWithTheRun) {
  StatusView status;
  status.state = RunState::kTraining;
  status.last_closed_unix_ns = 70'000'000'000;
  EXPECT_DOUBLE_EQ(RunSeconds(status, 10'000'000'000, 100'000'000'000), 90);
  for (const RunState over : {RunState::kFinished, RunState::kStopped}) {
    status.state = over;
    EXPECT_DOUBLE_EQ(RunSeconds(status, 10'000'000'000, 100'000'000'000), 60);
  }
  status.last_closed_unix_ns = 0;
  EXPECT_DOUBLE_EQ(RunSeconds(status, 10'000'000'000, 100'000'000'000), 90)
      << "stopped before its first round";
  EXPECT_DOUBLE_EQ(RunSeconds(status, 200'000'000'000, 100'000'000'000), 0) << "a clock that was set back";
}

TEST(AdminMetrics, TheRunIsExportedInOrderOfTime) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 3; ++base) {
    run.clock().Advance(Seconds(2));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    for (const MemberRef& worker : workers) {
      const double loss = 3.0 - static_cast<double>(base) + (worker.worker == "b" ? 0.5 : 0);
      ASSERT_TRUE(run.Push(worker, base, Fill([](size_t) { return 0.01F; }), {.loss = loss}).ok());
    }
    ASSERT_EQ(run.Pull(workers[0], base)->snapshot->version, Version(base + 1));
    HeartbeatCall report;
    report.evaluations.push_back({.version = Version(base + 1), .loss = 4.0 - static_cast<double>(base)});
    run.clock().Advance(Seconds(1));
    ASSERT_TRUE(run.coordinator().Heartbeat(workers[0], report).ok());
  }
  ASSERT_TRUE(events.WaitFor(EventKind::kRoundClosed, 2));

  std::vector<MetricPointView> points;
  ASSERT_TRUE(run.admin()
                  .ExportMetrics([&](const MetricPointView& point) {
                    points.push_back(point);
                    return true;
                  })
                  .ok());
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &MetricPointView::unix_ns));
  std::set<std::string> names;
  std::vector<double> validation;
  std::vector<double> train;
  std::vector<double> open;
  for (const MetricPointView& point : points) {
    names.insert(point.name);
    if (point.name == "validation/loss") validation.push_back(point.value);
    if (point.name == "train/loss") train.push_back(point.value);
    if (point.name == "round/open_seconds") open.push_back(point.value);
    if (point.name == "validation/loss") {
      EXPECT_EQ(point.committed_tokens, point.version.value() * 128);
    }
  }
  EXPECT_THAT(names, IsSupersetOf({"train/loss", "train/learning_rate", "validation/loss",
                                   "round/contributions", "round/tokens", "round/payload_bytes",
                                   "round/open_seconds", "round/commit_seconds", "worker/loss", "worker/norm",
                                   "worker/tokens", "worker/steps", "outer/learning_rate"}));
  EXPECT_EQ(validation, (std::vector<double>{4, 3, 2}));
  EXPECT_EQ(train, (std::vector<double>{3.25, 2.25, 1.25}));
  ASSERT_EQ(open.size(), 3);
  EXPECT_NEAR(open[0], 2, 0.1);

  const MetricsView now = run.admin().GetMetrics();
  EXPECT_EQ(now.version, Version(3));
  EXPECT_EQ(now.train_loss, 1.25);
  EXPECT_EQ(now.validation_loss, 2);
  EXPECT_EQ(now.best_validation_loss, 2);
  EXPECT_NEAR(now.loss_slope_per_million_tokens, -1 / 128e-6, 1e-3);
  EXPECT_EQ(now.committed_tokens, 3 * 128);
  EXPECT_EQ(now.live_trainers, 2);
  EXPECT_GT(now.communication_reduction, 0);
  EXPECT_NEAR(now.wall_seconds, 9, 0.5);
}

TEST(AdminMetrics, RoundsAreListedWithWhoContributed) {
  TestRun run;
  EXPECT_TRUE(absl::IsNotFound(run.admin().ListRounds(FragmentId(0), Version(0), 10).status()));
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"b", "a"}, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 4; ++base) {
    run.clock().Advance(Seconds(2));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    for (const MemberRef& worker : workers) {
      const double loss = worker.worker == "b" ? 3.0 : 2.0;
      ASSERT_TRUE(run.Push(worker, base, Fill([](size_t) { return 0.01F; }), {.loss = loss}).ok());
    }
    ASSERT_EQ(run.Pull(workers[0], base)->snapshot->version, Version(base + 1));
  }
  ASSERT_TRUE(events.WaitFor(EventKind::kRoundClosed, 3));

  const auto all = run.admin().ListRounds(FragmentId(0), Version(0), 100);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->head, Version(4));
  ASSERT_EQ(all->rounds.size(), 4u);
  const RoundDetailView& first = all->rounds[0];
  EXPECT_EQ(first.summary.version, Version(1));
  EXPECT_EQ(first.summary.tokens, 128u);
  EXPECT_EQ(first.summary.train_loss, 2.5);
  EXPECT_NEAR(first.summary.open_seconds, 2, 0.1);
  ASSERT_EQ(first.contributions.size(), 2u);
  EXPECT_EQ(first.contributions[0].worker, "a");
  EXPECT_EQ(first.contributions[0].loss, 2.0);
  EXPECT_EQ(first.contributions[0].late_versions, 0u);
  EXPECT_EQ(first.contributions[1].worker, "b");
  EXPECT_NEAR(first.contributions[1].weight, 0.5, 1e-6);
  EXPECT_EQ(first.summary.payload_bytes,
            first.contributions[0].payload_bytes + first.contributions[1].payload_bytes);

  const auto two = run.admin().ListRounds(FragmentId(0), Version(1), 2);
  ASSERT_TRUE(two.ok());
  ASSERT_EQ(two->rounds.size(), 2u);
  EXPECT_EQ(two->rounds[0].summary.version, Version(2));
  EXPECT_TRUE(run.admin().ListRounds(FragmentId(0), Version(4), 10)->rounds.empty());
  EXPECT_TRUE(absl::IsNotFound(run.admin().ListRounds(FragmentId(1), Version(0), 10).status()));
  EXPECT_EQ(run.coordinator().GetStatus(0).last_event_sequence, events.events().back().sequence);
}

TEST(AdminMetrics, AnExportEndsWhenNobodyWantsMore) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers)
    ASSERT_TRUE(run.Push(worker, 0, Fill([](size_t) { return 0.01F; })).ok());
  ASSERT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
  int seen = 0;
  EXPECT_TRUE(run.admin().ExportMetrics([&](const MetricPointView&) { return ++seen < 3; }).ok());
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace atl
