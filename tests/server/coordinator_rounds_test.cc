#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "server/rejection.h"
#include "tests/server/test_run.h"

// Rounds through the coordinator's front door: seed, push, publish; compared with an independent computation.

namespace atl {
namespace {

float Start(size_t i) { return 1.0F + 0.001F * static_cast<float>(i); }
float DeltaA(size_t i) { return 0.01F * std::sin(static_cast<float>(i)); }
float DeltaB(size_t i) { return -0.02F * std::cos(static_cast<float>(i)); }

// PyTorch's SGD(nesterov=True) in float64, on the plain mean of two pseudo-gradients.
struct Reference {
  std::vector<double> theta;
  std::vector<double> v;
  explicit Reference(const std::vector<float>& start)
      : theta(start.begin(), start.end()), v(start.size(), 0.0) {}
  void Step(const std::vector<std::vector<float>>& deltas, double eta = 0.7) {
    for (size_t i = 0; i < theta.size(); ++i) {
      double mean = 0;
      for (const auto& delta : deltas) mean += delta[i] / static_cast<double>(deltas.size());
      v[i] = 0.9 * v[i] + mean;
      theta[i] -= eta * (mean + 0.9 * v[i]);
    }
  }
  double MaxError(const std::vector<float>& values) const {
    double worst = 0;
    for (size_t i = 0; i < theta.size(); ++i) worst = std::max(worst, std::abs(values[i] - theta[i]));
    return worst;
  }
};

TEST(CoordinatorRounds, VersionsFollowAnIndependentComputation) {
  TestRun run;
  const std::vector<float> start = Fill(Start);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, start);
  EXPECT_EQ(run.Published(workers[0], std::nullopt), start);
  Reference reference(start);
  for (uint64_t base = 0; base < 5; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    ASSERT_TRUE(run.Push(workers[0], base, Fill(DeltaA)).ok());
    const auto last = run.Push(workers[1], base, Fill(DeltaB));
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(last->arrived, 2);
    EXPECT_EQ(last->expected, 2);
    reference.Step({Fill(DeltaA), Fill(DeltaB)});
    EXPECT_LT(reference.MaxError(run.Published(workers[0], base)), 2e-6);
  }
  const StatusView status = run.coordinator().GetStatus(10);
  EXPECT_EQ(status.fragments[0].version, Version(5));
  EXPECT_EQ(status.rounds.size(), 5);
  EXPECT_EQ(status.parameters, 800);
  EXPECT_EQ(status.committed_tokens, 5 * 2 * 64);
  EXPECT_EQ(status.data_parallel_bytes, 5 * 2 * 2 * 8 * 800);
  EXPECT_EQ(status.push_bytes, kSmallElements * 5 * 2 * 4);
}

TEST(CoordinatorRounds, BitsDoNotDependOnArrivalOrThreads) {
  std::vector<std::vector<float>> outcomes;
  for (const bool reversed : {false, true}) {
    CoordinatorOptions options = SmallRun();
    options.run.round.start_workers = 3;
    options.run.merge.weights = MergeWeighting::kTokens;
    options.merge_threads = reversed ? 3 : 1;
    TestRun run(options);
    std::vector<MemberRef> workers = run.Begin({"a", "b", "c"}, Fill(Start));
    if (reversed) std::reverse(workers.begin(), workers.end());
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    for (const MemberRef& worker : workers) {
      const float scale = 1.0F / static_cast<float>(worker.worker[0]);
      const auto pushed = run.Push(worker, 0, Fill([&](size_t i) { return scale * DeltaA(i); }),
                                   {.tokens = static_cast<uint64_t>(worker.worker[0] - 'a' + 30)});
      ASSERT_TRUE(pushed.ok()) << pushed.status();
    }
    outcomes.push_back(run.Published(workers[0], 0));
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

TEST(CoordinatorRounds, TwoFragmentsGoTheirOwnWay) {
  CoordinatorOptions options = SmallRun();
  options.fragments = 2;
  TestRun run(options);
  const std::vector<float> half(512, 0.0F);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, half);
  for (const MemberRef& worker : workers) {
    ASSERT_TRUE(run.Pull(worker, std::nullopt, FragmentId(0)).ok());
    ASSERT_TRUE(run.Pull(worker, std::nullopt, FragmentId(1)).ok());
  }
  for (const MemberRef& worker : workers) {
    ASSERT_TRUE(run.Push(worker, 0, half, {.fragment = FragmentId(1)}).ok());
  }
  const auto pulled = run.Pull(workers[0], 0, FragmentId(1));
  ASSERT_TRUE(pulled.ok());
  EXPECT_EQ(pulled->snapshot->version, Version(1));
  const StatusView status = run.coordinator().GetStatus(1);
  EXPECT_EQ(status.fragments[0].version, Version(0));
  EXPECT_EQ(status.fragments[1].version, Version(1));
  EXPECT_EQ(status.committed_tokens, 0) << "tokens are counted with fragment 0";
}

TEST(CoordinatorRounds, AQuorumClosesAfterTheGraceWithoutTheStraggler) {
  CoordinatorOptions options = SmallRun();
  options.run.round.quorum = 0.5;
  options.run.round.grace = Seconds(5);
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Fill(DeltaA)).ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).fragments[0].missing, std::vector<WorkerName>{"b"});
  run.clock().Advance(Seconds(6));
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
  const auto late = run.Push(workers[1], 0, Fill(DeltaB));
  EXPECT_EQ(ReasonOf(late.status()), RejectionReason::kStaleBase);
  EXPECT_EQ(RejectionOf(late.status())->metadata.at(kHeadVersionKey), "1");
}

TEST(CoordinatorRounds, ALostWorkerIsNotWaitedFor) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Fill(DeltaA)).ok());
  run.clock().Advance(Seconds(10));
  ASSERT_TRUE(run.Heartbeat(workers[0]).ok());
  run.clock().Advance(Seconds(10));
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
  EXPECT_EQ(events.WaitFor(EventKind::kWorkerLost)->worker, "b");
  // It comes back by itself, with the life it had.
  EXPECT_TRUE(run.Heartbeat(workers[1]).ok());
  EXPECT_EQ(events.WaitFor(EventKind::kWorkerReturned)->worker, "b");
}

TEST(CoordinatorRounds, AMergeThatOverflowsLeavesTheOffenderOut) {
  CoordinatorOptions options = SmallRun();
  options.max_contribution_norm = std::numeric_limits<double>::infinity();
  options.run.outer.learning_rate = 2;  // so that finite contributions give an infinite step
  TestRun run(options);
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Fill([](size_t) { return 3e38F; })).ok());
  ASSERT_TRUE(run.Push(workers[1], 0, Fill(DeltaB)).ok());
  Reference reference(Fill(Start));
  reference.Step({Fill(DeltaB)}, 2);
  EXPECT_LT(reference.MaxError(run.Published(workers[1], 0)), 1e-6);
  EXPECT_EQ(events.WaitFor(EventKind::kContributionRefused)->worker, "a");
}

TEST(CoordinatorRounds, TheRunEndsWithItsTokenBudget) {
  CoordinatorOptions options = SmallRun();
  options.run.rounds = 2;
  TestRun run(options);
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 2; ++base) {
    for (const MemberRef& worker : workers) {
      const auto pulled = run.Pull(worker, base == 0 ? std::nullopt : std::optional<uint64_t>(base - 1));
      EXPECT_EQ(pulled->plan.evaluate, worker.worker == "a");
      EXPECT_EQ(pulled->plan.active_workers, 2);
    }
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, base, Fill(DeltaA)).ok());
  }
  const auto last = run.Pull(workers[0], 1);
  ASSERT_EQ(last->outcome, PullOutcome::kParameters);
  EXPECT_TRUE(last->plan.evaluate);
  EXPECT_EQ(last->state, RunState::kFinished);
  EXPECT_EQ(last->plan.committed_tokens, last->plan.total_tokens);
  EXPECT_EQ(run.Pull(workers[1], 2)->outcome, PullOutcome::kRunFinished);
  EXPECT_EQ(ReasonOf(run.Push(workers[1], 2, Fill(DeltaA)).status()), RejectionReason::kStaleBase);
  HeartbeatCall report;
  report.evaluations.push_back({.version = Version(2), .loss = 1.25, .tokens = 100});
  ASSERT_TRUE(run.coordinator().Heartbeat(workers[0], report).ok());
  EXPECT_EQ(events.WaitFor(EventKind::kEvaluated)->evaluation->loss, 1.25);
  run.clock().Advance(Seconds(1));
  EXPECT_EQ(events.WaitFor(EventKind::kRunFinished)->version, Version(2));
  // It stays finished.
  ASSERT_EQ(run.coordinator().GetStatus(5).evaluations.size(), 1);
}

TEST(CoordinatorRounds, OnlyTheWorkerThatWasAskedWritesTheValidationCurve) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  const auto report = [&](const MemberRef& worker, uint64_t version, double loss) {
    HeartbeatCall call;
    call.evaluations.push_back({.version = Version(version), .loss = loss, .tokens = 100});
    ASSERT_TRUE(run.coordinator().Heartbeat(worker, call).ok());
  };
  ASSERT_TRUE(run.Pull(workers[0])->plan.evaluate);
  ASSERT_FALSE(run.Pull(workers[1])->plan.evaluate);
  report(workers[1], 0, 0.01);
  const auto ignored = events.WaitFor(EventKind::kUnknown);
  EXPECT_EQ(ignored->worker, "b");
  EXPECT_NE(ignored->message.find("was not asked"), std::string::npos) << ignored->message;
  for (const double loss :
       {0.0, -1.0, 1e5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    report(workers[0], 0, loss);
  }
  report(workers[0], 1, 3.0);  // is not published
  EXPECT_TRUE(run.coordinator().GetStatus(5).evaluations.empty());
  report(workers[0], 0, 4.5);
  report(workers[0], 0, 3.5);
  report(workers[1], 0, 0.01);
  const StatusView status = run.coordinator().GetStatus(5);
  ASSERT_EQ(status.evaluations.size(), 1);
  EXPECT_EQ(status.evaluations[0].loss, 4.5);
  EXPECT_EQ(events.WaitFor(EventKind::kEvaluated)->worker, "a");
}

TEST(CoordinatorRounds, ATinyValidationLossIsNotShownAsZero) {
  for (const auto& [loss, text] : {std::pair(9.31e-10, "9.31e-10"), std::pair(3.14159, "3.1416")}) {
    TestRun run;
    EventCatcher events(&run.coordinator());
    const std::vector<MemberRef> workers = run.Begin({"a"}, Fill(Start));
    ASSERT_TRUE(run.Pull(workers[0])->plan.evaluate);
    HeartbeatCall call;
    call.evaluations.push_back({.version = Version(0), .loss = loss, .tokens = 100});
    ASSERT_TRUE(run.coordinator().Heartbeat(workers[0], call).ok());
    EXPECT_EQ(events.WaitFor(EventKind::kEvaluated)->message,
              std::string("version 0 has validation loss ") + text);
  }
}

}  // namespace
}  // namespace atl
