#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rejection.h"
#include "tests/server/test_run.h"

// What the coordinator measures and does with it: grace, inner steps; what it waits for; clocks; the data
// set.

namespace atl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> Ones() {
  return Fill([](size_t) { return 1.0F; });
}
std::vector<float> Small() {
  return Fill([](size_t) { return 0.001F; });
}

CoordinatorOptions PatientRun() {
  CoordinatorOptions options = SmallRun();
  options.run.round.lease = Seconds(10000);
  options.run.round.deadline = Seconds(1000);
  return options;
}

uint64_t Head(TestRun& run) { return run.coordinator().GetStatus(0).fragments[0].version.value(); }

void PullAll(TestRun& run, const std::vector<MemberRef>& workers) {
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
}

TEST(MeasuredGrace, AStragglerThatWasCutOffIsWaitedForInTheNextRound) {
  CoordinatorOptions options = PatientRun();
  options.run.round.quorum = 0.5;
  options.run.round.grace = Seconds(5);
  options.run.round.grace_mode = GraceMode::kAdaptive;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  PullAll(run, workers);
  ASSERT_TRUE(run.Push(workers[0], 0, Small()).ok());
  run.clock().Advance(Seconds(6));
  ASSERT_TRUE(run.Pull(workers[0], 0).ok());
  run.clock().Advance(Seconds(9));
  EXPECT_EQ(ReasonOf(run.Push(workers[1], 0, Small()).status()), RejectionReason::kStaleBase);

  PullAll(run, workers);
  ASSERT_TRUE(run.Push(workers[0], 1, Small()).ok());
  run.clock().Advance(Seconds(14));
  // The grace has become 30 s: twice the 15 s that it took. The decision is made anew before the answer.
  ASSERT_TRUE(run.Push(workers[1], 1, Small()).ok());
  ASSERT_TRUE(run.Pull(workers[1], 1).ok());
  const StatusView status = run.coordinator().GetStatus(10);
  EXPECT_EQ(status.rounds.back().contributions, 2);
  EXPECT_THAT(status.rounds.front().close_reason, HasSubstr("the grace of 5.0 s is over"));
}

TEST(MeasuredPace, ThoseOfDifferentSpeedGetStepsToArriveTogether) {
  CoordinatorOptions options = PatientRun();
  options.run.inner.steps = 8;
  options.run.inner.pace = InnerPace::kAdaptive;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"fast", "slow"}, Ones());
  for (const MemberRef& worker : workers) EXPECT_EQ(run.Pull(worker)->plan.inner_steps, 8) << "not known yet";
  run.clock().Advance(Seconds(10));
  ASSERT_TRUE(run.Push(workers[0], 0, Small(), {.tokens = 8 * kStepTokens, .steps = 8}).ok());
  run.clock().Advance(Seconds(20));
  ASSERT_TRUE(run.Push(workers[1], 0, Small(), {.tokens = 8 * kStepTokens, .steps = 8}).ok());
  ASSERT_TRUE(run.Pull(workers[0], 0).ok());
  // Rates 0.8 and 0.267 steps/s: 12 and 4 steps take both 15 s, and the mean is 8.
  EXPECT_EQ(run.Pull(workers[0])->plan.inner_steps, 12);
  EXPECT_EQ(run.Pull(workers[1])->plan.inner_steps, 4);
  const std::vector<WorkerView> views = run.coordinator().ListWorkers(false);
  ASSERT_EQ(views.size(), 2);
  EXPECT_EQ(views[0].inner_steps, 12);
  EXPECT_NEAR(views[0].steps_per_second, 0.8, 1e-9);
  EXPECT_NEAR(views[1].steps_per_second, 8.0 / 30, 1e-9);

  // What is claimed is capped by what was given: 12 and 4 steps of 32 tokens, not what they say.
  const uint64_t before = run.coordinator().GetStatus(0).committed_tokens;
  for (const MemberRef& worker : workers) {
    ASSERT_TRUE(run.Push(worker, 1, Small(), {.tokens = 1'000'000, .steps = 1000}).ok());
  }
  ASSERT_TRUE(run.Pull(workers[0], 1).ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).committed_tokens - before, (12 + 4) * kStepTokens);
}

TEST(MeasuredPace, OfTheRunLeavesOutTheTimeWithoutWorkers) {
  CoordinatorOptions options = PatientRun();
  options.run.round.lease = Seconds(100);
  TestRun run(options);
  std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  const auto round = [&](uint64_t base) {
    PullAll(run, workers);
    run.clock().Advance(Seconds(10));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, base, Small()).ok());
    ASSERT_TRUE(run.Pull(workers[0], base).ok());
  };
  round(0);
  const double usual = run.coordinator().GetStatus(0).tokens_per_second;
  EXPECT_GT(usual, 0);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.coordinator().Leave(worker, "").ok());
  run.clock().Advance(Seconds(600));
  workers = {run.Join("a"), run.Join("b")};
  EXPECT_NEAR(run.coordinator().GetStatus(0).tokens_per_second, usual, usual * 0.01)
      << "while the round is open";
  round(1);
  const StatusView status = run.coordinator().GetStatus(1);
  // The thread of the rounds may have read the clock before its last advance.
  EXPECT_GE(status.rounds.back().open_seconds, 600);
  EXPECT_NEAR(status.tokens_per_second, usual, usual * 0.01);
}

TEST(MeasuredPace, IsLearnedFromTheRecordsAfterARestart) {
  CoordinatorOptions options = PatientRun();
  options.run.inner.steps = 8;
  options.run.inner.pace = InnerPace::kAdaptive;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"fast", "slow"}, Ones());
  uint64_t base = 0;
  // 1.2 and 0.4 steps/s. The first round is of equal steps; from the second on they arrive together.
  for (; base < 8; ++base) {
    std::vector<uint32_t> steps;
    for (const MemberRef& worker : workers) steps.push_back(run.Pull(worker)->plan.inner_steps);
    run.clock().Advance(Seconds(steps[0] / 1.2));
    ASSERT_TRUE(
        run.Push(workers[0], base, Small(), {.tokens = steps[0] * kStepTokens, .steps = steps[0]}).ok());
    const double left = steps[1] / 0.4 - steps[0] / 1.2;
    if (left > 0) run.clock().Advance(Seconds(left));
    ASSERT_TRUE(
        run.Push(workers[1], base, Small(), {.tokens = steps[1] * kStepTokens, .steps = steps[1]}).ok());
    ASSERT_TRUE(run.Pull(workers[0], base).ok());
  }
  EXPECT_EQ(run.Pull(workers[0])->plan.inner_steps, 12);
  ASSERT_TRUE(run.Restart().ok());
  for (const char* name : {"fast", "slow"}) run.Join(name);
  const std::vector<WorkerView> views = run.coordinator().ListWorkers(false);
  ASSERT_EQ(views.size(), 2);
  EXPECT_NEAR(views[0].steps_per_second / views[1].steps_per_second, 3, 0.3);
  EXPECT_NEAR(run.Pull(run.Join("fast"))->plan.inner_steps, 12, 1);
  EXPECT_NEAR(run.Pull(run.Join("slow"))->plan.inner_steps, 4, 1);
}

TEST(Waits, EveryOneSaysWhatForFromWhomAndUntilWhen) {
  TestRun run(PatientRun());
  EXPECT_THAT(run.coordinator().GetStatus(0).waiting.front().what, HasSubstr("worker to join and seed"));
  const MemberRef a = run.Join("a");
  EXPECT_THAT(run.coordinator().GetStatus(0).waiting.front().from, ElementsAre("a"));
  const MemberRef b = run.Join("b");
  ASSERT_TRUE(run.Seed(a, Ones()).ok());
  for (const MemberRef& worker : {a, b}) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(a, 0, Small()).ok());
  run.clock().Advance(Seconds(100));
  // The decision that is shown is made on the rounds' thread.
  const MonoTime limit = SystemClock().Now() + Seconds(60);
  std::vector<WaitView> waits;
  while (SystemClock().Now() < limit) {
    waits = run.coordinator().GetStatus(0).waiting;
    if (waits.size() == 1 && waits[0].what.find("1 of 2 contributions") != std::string::npos) break;
  }
  ASSERT_EQ(waits.size(), 1);
  EXPECT_THAT(waits[0].what, HasSubstr("fragment 0: 1 of 2 contributions"));
  EXPECT_THAT(waits[0].from, ElementsAre("b"));
  EXPECT_NEAR(waits[0].ends_in_s, 900, 1e-6) << "the deadline";
  EXPECT_NEAR(waits[0].since_s, 100, 1e-6);

  run.faults().commit = true;
  ASSERT_TRUE(run.Push(b, 0, Small()).ok());
  while (SystemClock().Now() < limit && run.coordinator().GetStatus(0).storage_error.empty()) {
  }
  const std::vector<WaitView> failing = run.coordinator().GetStatus(0).waiting;
  ASSERT_EQ(failing.size(), 2);
  EXPECT_THAT(failing[0].what, HasSubstr("version 1 is being merged and committed"));
  EXPECT_THAT(failing[1].what, HasSubstr("the disk (rounds of fragment 0)"));
  run.clock().Advance(Seconds(7));
  const auto since = [&run] {
    const std::vector<WaitView> now = run.coordinator().GetStatus(0).waiting;
    return now.size() == 2 ? now[1].since_s : 0.0;
  };
  EXPECT_NEAR(since(), 7, 1e-6);
  run.clock().Advance(Seconds(5));
  EXPECT_TRUE(Eventually([&] { return since() > 11; })) << "since the first failure, not the latest";
  run.faults().commit = false;
}

TEST(Clocks, AJumpOfTheWallClockChangesNothing) {
  CoordinatorOptions options = SmallRun();
  options.run.round.quorum = 0.5;
  options.run.round.grace = Seconds(5);
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  EventCatcher events(&run.coordinator());
  for (uint64_t base = 0; base < 4; ++base) {
    PullAll(run, workers);
    ASSERT_TRUE(run.Push(workers[0], base, Small()).ok());
    run.clock().JumpWall(base % 2 == 0 ? Seconds(3600) : Seconds(-7200));
    // Neither the grace nor a lease has moved.
    run.clock().Advance(Seconds(4));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Heartbeat(worker).ok());
    const auto waited = run.Pull(workers[0], base, FragmentId(0), Duration(0));
    ASSERT_TRUE(waited.ok());
    EXPECT_EQ(waited->outcome, PullOutcome::kNotYet);
    EXPECT_EQ(Head(run), base);
    run.clock().Advance(Seconds(2));
    ASSERT_EQ(run.Pull(workers[0], base)->snapshot->version, Version(base + 1));
  }
  EXPECT_EQ(run.coordinator().ListWorkers(false).size(), 2);
  for (const EventView& event : events.events()) EXPECT_NE(event.kind, EventKind::kWorkerLost);
  // Round times are taken from the steady clock, too.
  for (const RoundSummaryView& round : run.coordinator().GetStatus(10).rounds) {
    EXPECT_NEAR(round.open_seconds, 6, 0.5);
  }
}

absl::StatusOr<MemberRef> JoinWithData(TestRun& run, const WorkerName& name, const std::string& fingerprint) {
  JoinCall call;
  call.worker = name;
  call.secret = "0123456789abcdef-" + name;
  call.manifest_hash = ManifestHash(SmallManifest());
  call.dataset = DatasetSummary{
      .tokenizer = "bytes", .vocabulary = 256, .train_tokens = 1000, .fingerprint = fingerprint};
  const auto joined = run.coordinator().Join(call);
  if (!joined.ok()) return joined.status();
  return joined->member;
}

RejectionReason DataRejection(TestRun& run, const WorkerName& name, const std::string& fingerprint) {
  return ReasonOf(JoinWithData(run, name, fingerprint).status());
}

TEST(DataSet, TheFirstContributionPinsTheFingerprintAndARestartKeepsIt) {
  CoordinatorOptions options = SmallRun();
  options.run.round.start_workers = 1;
  TestRun run(options);
  // It stops before it has contributed anything.
  const auto wrong = JoinWithData(run, "wrong", "f2");
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  ASSERT_TRUE(run.coordinator().Leave(*wrong, "no time").ok());
  const auto a = JoinWithData(run, "a", "f1");
  ASSERT_TRUE(a.ok()) << a.status();
  const auto slow = JoinWithData(run, "slow", "f2");
  ASSERT_TRUE(slow.ok()) << slow.status();
  ASSERT_TRUE(run.Seed(*a, Fill([](size_t) { return 1.0F; })).ok());
  ASSERT_TRUE(run.Pull(*a).ok());
  ASSERT_TRUE(run.Pull(*slow).ok());
  const std::vector<float> step = Fill([](size_t) { return 0.01F; });
  ASSERT_TRUE(run.Push(*a, 0, step).ok());
  EXPECT_EQ(ReasonOf(run.Push(*slow, 0, step).status()), RejectionReason::kDatasetMismatch)
      << "it joined before anything was pinned";
  EXPECT_EQ(DataRejection(run, "wrong", "f2"), RejectionReason::kDatasetMismatch);
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(DataRejection(run, "b", "f2"), RejectionReason::kDatasetMismatch)
      << "nobody has joined this life yet";
  EXPECT_TRUE(JoinWithData(run, "b", "f1").ok());
}

TEST(DataSet, AnOperatorResetsThePin) {
  CoordinatorOptions options = SmallRun();
  options.run.round.start_workers = 1;
  TestRun run(options);
  const auto wrong = JoinWithData(run, "wrong", "f2");
  ASSERT_TRUE(run.Seed(*wrong, Fill([](size_t) { return 1.0F; })).ok());
  ASSERT_TRUE(run.Pull(*wrong).ok());
  ASSERT_TRUE(run.Push(*wrong, 0, Fill([](size_t) { return 0.01F; })).ok());
  ASSERT_TRUE(run.Pull(*wrong, 0).ok());
  EXPECT_EQ(DataRejection(run, "a", "f1"), RejectionReason::kDatasetMismatch);
  ASSERT_TRUE(run.coordinator().Leave(*wrong, "sorry").ok());
  run.faults().member = true;
  EXPECT_EQ(ReasonOf(run.admin().ControlRun({}, RunAction::kResetDataset, "").status()),
            RejectionReason::kStorageFull);
  run.faults().member = false;
  EXPECT_EQ(DataRejection(run, "a", "f1"), RejectionReason::kDatasetMismatch) << "nothing was reset";
  ASSERT_TRUE(run.admin().ControlRun({}, RunAction::kResetDataset, "wrong files").ok());
  ASSERT_TRUE(run.Restart().ok());
  const auto a = JoinWithData(run, "a", "f1");
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(run.Pull(*a, 0).ok());
  ASSERT_TRUE(run.Push(*a, 1, Fill([](size_t) { return 0.02F; })).ok());
  EXPECT_EQ(DataRejection(run, "wrong", "f2"), RejectionReason::kDatasetMismatch) << "pinned anew";
}

}  // namespace
}  // namespace atl
