#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>

#include "server/opening/run_opening.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

// What survives the end of the process, and a disk that is full.

namespace atl {
namespace {

using testing::HasSubstr;

float Start(size_t i) { return 0.5F + 0.01F * static_cast<float>(i % 13); }
std::vector<float> DeltaOf(const MemberRef& worker, uint64_t base) {
  return Fill([&](size_t i) {
    return 0.01F * std::sin(static_cast<float>(i + base * 31 + static_cast<size_t>(worker.worker[0])));
  });
}

void Round(TestRun& run, const std::vector<MemberRef>& workers, uint64_t base) {
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : workers) {
    const auto pushed = run.Push(worker, base, DeltaOf(worker, base));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }
  ASSERT_TRUE(run.Pull(workers[0], base).ok());
}

TEST(CoordinatorRecovery, ARunGoesOnWhereItStoppedWithTheSameBits) {
  TestRun undisturbed;
  const std::vector<MemberRef> reference = undisturbed.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 6; ++base) Round(undisturbed, reference, base);

  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 6; ++base) {
    // In the middle of every round: one contribution is accepted, the other not there yet.
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    ASSERT_TRUE(run.Push(workers[0], base, DeltaOf(workers[0], base)).ok());
    const absl::Status restarted = run.Restart();
    ASSERT_TRUE(restarted.ok()) << restarted;
    const auto known =
        run.coordinator().GetPushStatus(workers[0], {.fragment = {}, .base = Version(base), .sequence = 0});
    EXPECT_EQ(known->stage, PushStage::kAccepted);
    ASSERT_TRUE(run.Push(workers[1], base, DeltaOf(workers[1], base)).ok());
    ASSERT_TRUE(run.Pull(workers[0], base).ok());
  }
  EXPECT_EQ(run.Published(workers[0], 5), undisturbed.Published(reference[0], 5));
  const StatusView status = run.coordinator().GetStatus(100);
  EXPECT_EQ(status.rounds.size(), 6);
  EXPECT_EQ(status.committed_tokens, undisturbed.coordinator().GetStatus(0).committed_tokens);
}

/// A round in which the workers train for so long.
void TimedRound(TestRun& run, const std::vector<MemberRef>& workers, uint64_t base, Duration duration) {
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  run.clock().Advance(duration);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Heartbeat(worker).ok());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, base, DeltaOf(worker, base)).ok());
  ASSERT_TRUE(run.Pull(workers[0], base).ok());
}

TEST(CoordinatorRecovery, NoSpeedIsShownUntilAWholeRoundOfThisLifeWasTimed) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 3; ++base) TimedRound(run, workers, base, Seconds(8));
  const auto speed = [&] { return run.coordinator().GetStatus(0).tokens_per_second; };
  const auto left = [&] { return run.coordinator().GetStatus(0).eta_seconds; };
  ASSERT_DOUBLE_EQ(speed(), 16);
  run.clock().Advance(Seconds(7));
  ASSERT_TRUE(run.Restart().ok());
  for (const MemberRef& worker : workers) {
    HeartbeatCall call;
    call.progress.tokens_per_second = 1;  // it has waited
    ASSERT_TRUE(run.coordinator().Heartbeat(worker, call).ok());
  }
  EXPECT_EQ(speed(), 0);
  // Most of it was trained while the coordinator was away.
  TimedRound(run, workers, 3, Seconds(1));
  EXPECT_EQ(speed(), 0);
  EXPECT_EQ(left(), 0);
  TimedRound(run, workers, 4, Seconds(8));
  EXPECT_DOUBLE_EQ(speed(), 16);
  EXPECT_DOUBLE_EQ(left(), (12800 - 5 * 128) / 16.0);
}

TEST(CoordinatorRecovery, ARoundThatWaitedForItsWorkersToJoinIsNoPartOfTheSpeed) {
  TestRun run;
  std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 2; ++base) TimedRound(run, workers, base, Seconds(8));
  const auto speed = [&] { return run.coordinator().GetStatus(0).tokens_per_second; };
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.coordinator().Leave(worker, "moved").ok());
  run.clock().Advance(Seconds(14));  // less than a lease
  workers = {run.Join("a"), run.Join("b")};
  EXPECT_DOUBLE_EQ(speed(), 16);
  TimedRound(run, workers, 2, Seconds(10));
  EXPECT_DOUBLE_EQ(speed(), 16);
  TimedRound(run, workers, 3, Seconds(8));
  EXPECT_DOUBLE_EQ(speed(), 16);
}

TEST(CoordinatorRecovery, VersionsThatWereNotStoredAreReplayed) {
  TestRun undisturbed;
  const std::vector<MemberRef> reference = undisturbed.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 3; ++base) Round(undisturbed, reference, base);

  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  Round(run, workers, 0);
  Round(run, workers, 1);
  run.WaitForStored(2);  // else the round would wait for it
  run.faults().store = true;
  Round(run, workers, 2);  // committed, published, and its tensors are not on disk
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.Published(workers[0], 2), undisturbed.Published(reference[0], 2));
  EXPECT_LT(run.coordinator().GetStatus(0).fragments[0].stored, Version(3));
  EventCatcher events(&run.coordinator());
  EXPECT_TRUE(events.WaitFor(EventKind::kStorageFailing, 1).has_value())
      << "in its second life as in its first";
  run.faults().store = false;
  EXPECT_TRUE(events.WaitFor(EventKind::kStorageRecovered).has_value());
}

TEST(CoordinatorRecovery, ADiskThatIsFullAtCommitLosesNothing) {
  TestRun undisturbed;
  const std::vector<MemberRef> reference = undisturbed.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 2; ++base) Round(undisturbed, reference, base);

  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  run.clock().Advance(Seconds(2));
  Round(run, workers, 0);
  EXPECT_GT(run.coordinator().GetStatus(0).tokens_per_second, 0);
  run.faults().commit = true;
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 1, DeltaOf(worker, 1)).ok());
  ASSERT_TRUE(events.WaitFor(EventKind::kStorageFailing).has_value());
  const StatusView failing = run.coordinator().GetStatus(0);
  EXPECT_NE(failing.storage_error.find("no space left"), std::string::npos);
  EXPECT_EQ(failing.state, RunState::kDegraded);
  EXPECT_EQ(failing.tokens_per_second, 0) << "nothing arrives";
  EXPECT_EQ(failing.eta_seconds, 0);
  EXPECT_EQ(failing.fragments[0].version, Version(1)) << "what is not on disk is not published";
  const MemberRef late = run.Join("c");
  EXPECT_EQ(ReasonOf(run.Push(late, 1, DeltaOf(late, 1)).status()), RejectionReason::kStaleBase);
  run.faults().commit = false;
  run.clock().Advance(Seconds(1));
  EXPECT_EQ(run.Published(workers[0], 1), undisturbed.Published(reference[0], 1));
  EXPECT_TRUE(events.WaitFor(EventKind::kStorageRecovered).has_value());
  EXPECT_GT(run.faults().rejected_commits, 0);
  EXPECT_EQ(run.coordinator().GetStatus(0).storage_error, "");
  EXPECT_GT(run.coordinator().GetStatus(0).tokens_per_second, 0);
}

/// What the metrics are told of the data directory.
struct StorageWatch final : CoordinatorObserver {
  void OnStorageFailing(bool now) override { failing = now; }
  std::atomic<bool> failing{false};
};

TEST(CoordinatorRecovery, TheMetricsAreToldThatTheDiskFailsAndWhenItWorksAgain) {
  StorageWatch watch;
  TestRun run(SmallRun(), {.observer = &watch});
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  EXPECT_FALSE(watch.failing);
  run.faults().commit = true;
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, DeltaOf(worker, 0)).ok());
  EXPECT_TRUE(Eventually([&] { return watch.failing.load(); }));
  run.faults().commit = false;
  run.clock().Advance(Seconds(1));
  EXPECT_TRUE(Eventually([&] { return !watch.failing; }));
}

TEST(CoordinatorRecovery, ADamagedContributionIsNotMerged) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  Round(run, workers, 0);
  run.faults().payload = true;
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 1, DeltaOf(worker, 1)).ok());
  ASSERT_TRUE(events.WaitFor(EventKind::kStorageFailing).has_value());
  const StatusView failing = run.coordinator().GetStatus(0);
  EXPECT_THAT(failing.storage_error,
              testing::AllOf(HasSubstr("contributions cannot be read back"), HasSubstr("worker a"),
                             HasSubstr("crc32c"), HasSubstr("/disk/payload")));
  EXPECT_EQ(failing.fragments[0].version, Version(1));
  // The memory, and not the disk, may have been at fault.
  run.faults().payload = false;
  run.clock().Advance(Seconds(1));
  EXPECT_TRUE(run.Pull(workers[0], 1).ok());
  EXPECT_TRUE(events.WaitFor(EventKind::kStorageRecovered).has_value());
}

TEST(CoordinatorRecovery, ADiskThatIsFullAtAcceptIsTriedAgain) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  run.faults().accept = true;
  const auto rejected = run.Push(workers[0], 0, DeltaOf(workers[0], 0));
  EXPECT_EQ(ReasonOf(rejected.status()), RejectionReason::kStorageFull);
  EXPECT_TRUE(RejectionOf(rejected.status())->retry_after.has_value());
  run.faults().accept = false;
  const auto pushed = run.Push(workers[0], 0, DeltaOf(workers[0], 0));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_FALSE(pushed->duplicate);
}

TEST(CoordinatorRecovery, AJoinThatCannotBeRecordedIsRejected) {
  TestRun run;
  run.faults().member = true;
  EXPECT_EQ(ReasonOf(run.TryJoin("a").status()), RejectionReason::kStorageFull);
  run.faults().member = false;
  EXPECT_TRUE(run.TryJoin("a").ok());
}

TEST(CoordinatorRecovery, MembersAreKnownAgain) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  Round(run, workers, 0);
  ASSERT_TRUE(run.coordinator().Leave(workers[1], "enough").ok());
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_TRUE(run.Heartbeat(workers[0]).ok()) << "its life goes on without a new Join";
  EXPECT_EQ(ReasonOf(run.Heartbeat(workers[1]).status()), RejectionReason::kNotAMember);
  const auto back = run.TryJoin("b");
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->returning);
  EXPECT_GT(back->member.incarnation, workers[1].incarnation);
  EXPECT_EQ(back->data->samples_consumed, 8) << "its position in the data, as committed";
  EXPECT_EQ(ReasonOf(run.TryJoin("a", "another secret").status()), RejectionReason::kNameTaken);
}

TEST(CoordinatorRecovery, AWorkerThatComputesIsWaitedForAfterARestart) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  Round(run, workers, 0);
  ASSERT_TRUE(run.Restart().ok());
  HeartbeatCall computing;
  computing.progress.phase = WorkerPhase::kTraining;
  computing.progress.base = Version(1);
  ASSERT_TRUE(run.coordinator().Heartbeat(workers[1], computing).ok());
  ASSERT_TRUE(run.Push(workers[0], 1, DeltaOf(workers[0], 1)).ok());
  // Later than the time for which everybody is waited for.
  for (int i = 0; i < 3; ++i) {
    run.clock().Advance(Seconds(10));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Heartbeat(worker).ok());
  }
  EXPECT_EQ(run.coordinator().GetStatus(0).fragments[0].missing, std::vector<WorkerName>{"b"});
  EXPECT_EQ(run.Pull(workers[0], 1, FragmentId(0), Duration(0))->outcome, PullOutcome::kNotYet);
}

TEST(CoordinatorRecovery, EventsAndEvaluationsAreKept) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  ASSERT_TRUE(run.Pull(workers[0])->plan.evaluate);
  HeartbeatCall report;
  report.evaluations.push_back({.version = Version(0), .loss = 5.5, .tokens = 10});
  ASSERT_TRUE(run.coordinator().Heartbeat(workers[0], report).ok());
  Round(run, workers, 0);
  uint64_t last = 0;
  {
    EventCatcher live(&run.coordinator());
    ASSERT_TRUE(live.WaitFor(EventKind::kRoundClosed).has_value());
  }
  ASSERT_TRUE(run.Restart().ok());
  EventCatcher events(&run.coordinator());
  ASSERT_TRUE(events.WaitFor(EventKind::kCoordinatorStarted, 1).has_value());
  for (const EventView& event : events.events()) {
    EXPECT_EQ(event.sequence, last + 1);
    last = event.sequence;
  }
  EXPECT_EQ(events.WaitFor(EventKind::kRoundClosed)->round->contributions, 2);
  EventCatcher tail(&run.coordinator(), last - 1);
  EXPECT_EQ(tail.WaitFor(EventKind::kCoordinatorStarted)->sequence, last);
  EXPECT_EQ(run.coordinator().GetStatus(1).first_evaluation->loss, 5.5);
}

TEST(CoordinatorRecovery, AnEvaluationThatOutlivesARestartIsTaken) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  ASSERT_TRUE(run.Pull(workers[0])->plan.evaluate);
  ASSERT_TRUE(run.Restart().ok());
  const auto report = [&](const MemberRef& worker, double loss) {
    HeartbeatCall call;
    call.evaluations.push_back({.version = Version(0), .loss = loss, .tokens = 10});
    ASSERT_TRUE(run.coordinator().Heartbeat(worker, call).ok());
  };
  report(run.Join("stranger"), 0.01);
  EXPECT_TRUE(run.coordinator().GetStatus(5).evaluations.empty())
      << "it was no member when anybody was asked";
  report(workers[0], 5.5);
  ASSERT_EQ(run.coordinator().GetStatus(5).evaluations.size(), 1);
  ASSERT_TRUE(run.Restart().ok());
  report(workers[1], 0.01);
  ASSERT_EQ(run.coordinator().GetStatus(5).evaluations.size(), 1);
  EXPECT_EQ(run.coordinator().GetStatus(5).evaluations[0].loss, 5.5);
}

TEST(CoordinatorRecovery, AnotherConfigurationIsRecordedOrRejected) {
  TestRun run;
  run.Begin({"a", "b"}, Fill(Start));
  run.options().config_bytes = "config-2";
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 2);
  run.options().run.shards = 3;
  const absl::Status rejected = run.Restart();
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected));
  EXPECT_NE(rejected.message().find("checkpoint.shards"), std::string::npos) << rejected;
}

TEST(CheckSettled, NamesTheFieldThatMayNotChange) {
  const RunOptions recorded = SmallRun().run;
  EXPECT_TRUE(CheckSettled(recorded, recorded).ok());
  RunOptions now = recorded;
  now.rounds = 500;
  now.outer.learning_rate = 0.1;
  EXPECT_TRUE(CheckSettled(recorded, now).ok());
  now.model.gpt().width = 7;
  EXPECT_NE(CheckSettled(recorded, now).message().find("model.gpt.width"), std::string::npos);
}

TEST(CheckSettled, ShowsValuesAsAFileHasThem) {
  const RunOptions recorded = SmallRun().run;
  const auto rejection = [&](const std::function<void(RunOptions&)>& change) {
    RunOptions now = recorded;
    change(now);
    return std::string(CheckSettled(recorded, now).message());
  };
  EXPECT_THAT(rejection([](RunOptions& now) { now.sync.mode = SyncMode::kOverlapped; }),
              HasSubstr("this run has blocking, the configuration says overlapped"));
  EXPECT_THAT(rejection([](RunOptions& now) { now.sync.pattern = FragmentPattern::kStrided; }),
              HasSubstr("the configuration says strided"));
  EXPECT_THAT(rejection([](RunOptions& now) { now.data.mode = DataMode::kLocal; }),
              HasSubstr("the configuration says local"));
  EXPECT_THAT(
      rejection([](RunOptions& now) { now.data.sequences = SequenceBounds::kAcrossFiles; }),
      HasSubstr(
          "data.sequences is fixed when a run begins: this run has within_files, the configuration says "
          "across_files"));
  EXPECT_THAT(rejection([](RunOptions& now) { now.data.isolate_documents = true; }),
              HasSubstr("data.isolate_documents is fixed when a run begins: this run has false"));
  EXPECT_THAT(rejection([](RunOptions& now) { now.outer.optimizer = OuterOptimizerKind::kDelayedNesterov; }),
              HasSubstr("this run has nesterov, the configuration says delayed_nesterov"));
  EXPECT_THAT(rejection([](RunOptions& now) { now.pull_codec = CodecKind::kBf16; }),
              HasSubstr("this run has fp32, the configuration says bf16"));
  EXPECT_THAT(rejection([](RunOptions& now) { now.model.gpt().bias = !now.model.gpt().bias; }),
              HasSubstr("true"));
}

}  // namespace
}  // namespace atl
