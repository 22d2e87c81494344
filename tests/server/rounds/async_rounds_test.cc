#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "server/rejection.h"
#include "tests/server/test_run.h"

// Without barriers: every arrival makes a version, and nobody waits for anybody.

namespace atl {
namespace {

CoordinatorOptions FreeRun() {
  CoordinatorOptions options = SmallRun();
  RunOptions& run = options.run;
  run.workers = 3;
  run.rounds = 1000;
  run.round.mode = RoundMode::kAsync;
  run.round.staleness_limit = 4;
  run.round.lease = Seconds(100000);
  run.round.deadline = Seconds(100000);
  run.outer.optimizer = OuterOptimizerKind::kDelayedNesterov;
  run.outer.delay = 3;
  return options;
}

/// A worker in virtual time: it pulls what there is, computes for so long, pushes.
struct Simulated {
  MemberRef caller;
  double seconds = 1;  // a round takes it
  double done_at = 0;
  uint64_t base = 0;
};

struct Totals {
  uint64_t accepted = 0;
  uint64_t rejected = 0;
  uint64_t stalest = 0;
};

void PullNewest(TestRun& run, Simulated& worker, double now) {
  const auto pulled = run.Pull(worker.caller, std::nullopt, FragmentId(0), Duration(0));
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ASSERT_EQ(pulled->outcome, PullOutcome::kParameters) << "at once";
  EXPECT_EQ(pulled->snapshot->version, run.coordinator().GetStatus(0).fragments[0].version);
  worker.base = pulled->snapshot->version.value();
  worker.done_at = now + worker.seconds;
}

void PushDone(TestRun& run, Simulated& worker, Totals& totals) {
  const auto head = run.coordinator().GetStatus(0).fragments[0].version;
  const auto pushed =
      run.Push(worker.caller, worker.base,
               Fill([&](size_t i) { return 0.001F * std::sin(static_cast<float>(i + worker.base)); }));
  if (!pushed.ok()) {
    EXPECT_EQ(ReasonOf(pushed.status()), RejectionReason::kStaleBase) << pushed.status();
    EXPECT_GT(head.value() - worker.base, 4);
    ++totals.rejected;
    return;
  }
  ++totals.accepted;
  totals.stalest = std::max(totals.stalest, head.value() - worker.base);
  // The version that it makes comes without anybody else doing anything.
  const auto next = run.Pull(worker.caller, pushed->head.value());
  ASSERT_TRUE(next.ok()) << next.status();
}

TEST(FreeRounds, VersionsAndTokensAddUpOverSpeedsAndARestart) {
  TestRun run(FreeRun());
  std::vector<Simulated> workers;
  const std::vector<MemberRef> callers =
      run.Begin({"fast", "medium", "slow"}, Fill([](size_t) { return 1.0F; }));
  const std::vector<double> seconds = {1.0, 2.7, 9.4};
  for (size_t i = 0; i < 3; ++i) workers.push_back({.caller = callers[i], .seconds = seconds[i]});
  Totals totals;
  for (Simulated& worker : workers) PullNewest(run, worker, 0);
  for (int event = 0; event < 80; ++event) {
    Simulated& next = *std::ranges::min_element(workers, {}, &Simulated::done_at);
    const double now = next.done_at;
    PushDone(run, next, totals);
    if (event == 40) {
      const absl::Status restarted = run.Restart();
      ASSERT_TRUE(restarted.ok()) << restarted;
    }
    PullNewest(run, next, now);
    if (HasFatalFailure()) return;
  }
  const StatusView status = run.coordinator().GetStatus(1000);
  uint64_t counted = 0;
  for (const RoundSummaryView& round : status.rounds) counted += round.contributions;
  EXPECT_EQ(status.fragments[0].version.value(), status.rounds.size());
  EXPECT_EQ(counted, totals.accepted);
  EXPECT_EQ(status.committed_tokens, totals.accepted * 64);
  EXPECT_EQ(status.fragments[0].version.value(), totals.accepted) << "each made one";
  EXPECT_GT(totals.rejected, 0) << "the slow one is more than four versions late";
  EXPECT_GT(totals.stalest, 0) << "the medium one is late, and counts";
  EXPECT_EQ(totals.accepted + totals.rejected, 80);
}

TEST(FreeRounds, NobodyWaitsForTheOthersToJoin) {
  TestRun run(FreeRun());
  const std::vector<MemberRef> workers = run.Begin({"a"}, Fill([](size_t) { return 1.0F; }));
  ASSERT_TRUE(run.Push(workers[0], 0, Fill([](size_t) { return 0.1F; })).ok());
  const auto pulled = run.Pull(workers[0], 0);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->snapshot->version, Version(1));
}

TEST(FreeRounds, WorkersOfEqualSpeedAreNotLate) {
  TestRun run(FreeRun());
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c"}, Fill([](size_t) { return 1.0F; }));
  uint64_t late = 0;
  std::vector<uint64_t> bases(3, 0);
  for (int turn = 0; turn < 30; ++turn) {
    const size_t i = static_cast<size_t>(turn) % 3;
    const auto pushed = run.Push(workers[i], bases[i], Fill([&](size_t k) {
                                   return 0.001F * std::sin(static_cast<float>(k) + static_cast<float>(turn));
                                 }));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    late += pushed->late ? 1 : 0;
    const auto next = run.Pull(workers[i], pushed->head.value());
    ASSERT_TRUE(next.ok()) << next.status();
    bases[i] = next->snapshot->version.value();
  }
  EXPECT_EQ(late, 0u) << "each of the others made a version meanwhile, as the mode is meant";
}

TEST(FreeRounds, APushThatMustWaitForACommitIsNotCountedAsRejected) {
  TestRun run(FreeRun());
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  const std::vector<float> delta = Fill([](size_t) { return 0.5F; });
  run.faults().commit = true;
  ASSERT_TRUE(run.Push(workers[0], 0, delta).ok());
  ASSERT_TRUE(events.WaitFor(EventKind::kStorageFailing).has_value());
  EXPECT_TRUE(absl::IsUnavailable(run.Push(workers[1], 0, delta).status()));
  EXPECT_EQ(run.coordinator().ListWorkers(false)[1].contributions_refused, 0);
  run.faults().commit = false;
  run.clock().Advance(Seconds(1));
  ASSERT_TRUE(run.Pull(workers[0], 0).ok());
  EXPECT_TRUE(run.Push(workers[1], 0, delta).ok());
  const WorkerView again = run.coordinator().ListWorkers(false)[1];
  EXPECT_EQ(again.contributions_accepted, 1);
  EXPECT_EQ(again.contributions_refused, 0);
}

}  // namespace
}  // namespace atl
