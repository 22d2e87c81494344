#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/admin/audit.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

// Pause, resume, stop, close the round: what an operator does to the run.

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const AdminCaller kAnn{.user = "ann", .peer = "10.0.0.7:5"};

std::vector<float> Ones() {
  return Fill([](size_t) { return 1.0F; });
}
std::vector<float> Step() {
  return Fill([](size_t) { return 0.01F; });
}

size_t IndexOf(const std::vector<EventView>& events, EventKind kind) {
  size_t i = 0;
  while (i < events.size() && events[i].kind != kind) ++i;
  return i;
}

TEST(AdminRun, APausedRunKeepsWhatArrivesAndGivesNoPlans) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  const MemberRef observer = run.Join("eyes", WorkerRole::kObserver);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Step()).ok());
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "new disks").ok());
  const auto pushed = run.Push(workers[1], 0, Step());  // was in flight
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->arrived, 2);

  for (const std::optional<uint64_t> after : {std::optional<uint64_t>(), std::optional<uint64_t>(0)}) {
    const auto waits = run.Pull(workers[0], after, FragmentId(0), Duration(0));
    ASSERT_TRUE(waits.ok());
    EXPECT_EQ(waits->outcome, PullOutcome::kNotYet);
    EXPECT_EQ(waits->waiting_for, "paused by ann (10.0.0.7:5): new disks");
    EXPECT_EQ(waits->state, RunState::kPaused);
  }
  EXPECT_EQ(run.Pull(observer)->outcome, PullOutcome::kParameters) << "who does not train may read";
  EXPECT_EQ(run.Heartbeat(workers[0])->state, RunState::kPaused);
  EXPECT_EQ(run.coordinator().GetStatus(0).state_reason, "paused by ann (10.0.0.7:5): new disks");

  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kResume, "").ok());
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
  ASSERT_TRUE(events.WaitFor(EventKind::kRoundClosed));
  const std::vector<EventView> seen = events.events();
  EXPECT_LT(IndexOf(seen, EventKind::kRunPaused), IndexOf(seen, EventKind::kRunResumed));
  EXPECT_LT(IndexOf(seen, EventKind::kRunResumed), IndexOf(seen, EventKind::kRoundClosed));
}

TEST(AdminRun, SpeedsAreZeroWhileTheRunIsPaused) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) {
    HeartbeatCall call;
    call.progress.tokens_per_second = 500;
    ASSERT_TRUE(run.coordinator().Heartbeat(worker, call).ok());
  }
  const auto speeds = [&] {
    std::vector<double> all = {run.coordinator().GetStatus(0).tokens_per_second};
    for (const WorkerView& worker : run.coordinator().ListWorkers(true)) {
      all.push_back(worker.progress.tokens_per_second);
    }
    return all;
  };
  EXPECT_EQ(speeds(), std::vector<double>({1000, 500, 500}));
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "").ok());
  EXPECT_EQ(speeds(), std::vector<double>({0, 0, 0}));
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kResume, "").ok());
  EXPECT_EQ(speeds(), std::vector<double>({1000, 500, 500}));
  ASSERT_TRUE(run.coordinator().Leave(workers[1], "").ok());
  EXPECT_EQ(speeds(), std::vector<double>({500, 500, 0})) << "one has left";
}

TEST(AdminRun, AWaitingPullIsAnsweredWhenTheRunGoesOn) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "").ok());
  std::promise<absl::StatusOr<PullResult>> answer;
  run.coordinator().Pull(workers[0], {.fragment = FragmentId(0), .after = {}, .wait = Seconds(60)},
                         [&](absl::StatusOr<PullResult> result) { answer.set_value(std::move(result)); });
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kResume, "").ok());
  const auto result = answer.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome, PullOutcome::kParameters);
}

TEST(AdminRun, AfterAPauseTheDeadlineCountsAnew) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Step()).ok());
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "").ok());
  for (int i = 0; i < 30; ++i) {  // three deadlines
    run.clock().Advance(Seconds(10));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Heartbeat(worker).ok());
  }
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kResume, "").ok());
  ASSERT_TRUE(Eventually([&] {
    return run.coordinator().GetStatus(0).state == RunState::kTraining &&
           run.coordinator().GetStatus(0).fragments[0].wait_ends_in_s > 0;
  }));
  const FragmentStatusView fragment = run.coordinator().GetStatus(0).fragments[0];
  EXPECT_EQ(fragment.version, Version(0)) << fragment.waiting_for;
  EXPECT_EQ(fragment.missing, std::vector<WorkerName>{"b"});
  run.clock().Advance(Seconds(14));
  ASSERT_TRUE(run.Heartbeat(workers[1]).ok());
  ASSERT_TRUE(run.Push(workers[1], 0, Step()).ok());
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
}

TEST(AdminRun, APauseSurvivesARestart) {
  TestRun run;
  std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : workers) {
    if (worker.worker == "b") {
      ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "move").ok());
    }
    ASSERT_TRUE(run.Push(worker, 0, Step()).ok());
  }
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).state, RunState::kPaused);
  EXPECT_EQ(run.Pull(workers[0], std::nullopt, FragmentId(0), Duration(0))->outcome, PullOutcome::kNotYet);
  const auto twice = run.admin().ControlRun(kAnn, RunAction::kPause, "");
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(twice.status().message()), HasSubstr("paused by ann (10.0.0.7:5): move already"));
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kResume, "").ok());
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
}

TEST(AdminRun, AStoppedRunClosesWithWhatArrivedAndIsOver) {
  TestRun run;
  std::optional<EventCatcher> events(std::in_place, &run.coordinator());
  std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Step()).ok());
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kStop, "enough").ok());
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
  EXPECT_EQ(run.Pull(workers[1], 1)->outcome, PullOutcome::kRunFinished);
  const auto closed = events->WaitFor(EventKind::kRoundClosed);
  ASSERT_TRUE(closed && closed->round);
  EXPECT_EQ(closed->round->contributions, 1);
  EXPECT_THAT(closed->round->close_reason, HasSubstr("stopped by ann"));
  EXPECT_EQ(ReasonOf(run.Push(workers[1], 1, Step()).status()), RejectionReason::kStaleBase);
  run.WaitForStored(1);

  events.reset();
  for (const bool restarted : {false, true}) {
    if (restarted) {
      ASSERT_TRUE(run.Restart().ok());
    }
    EXPECT_EQ(run.coordinator().GetStatus(0).state, RunState::kStopped);
    EXPECT_EQ(run.Pull(workers[1], 1)->outcome, PullOutcome::kRunFinished);
    const auto resumed = run.admin().ControlRun(kAnn, RunAction::kResume, "");
    EXPECT_EQ(resumed.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(resumed.status().message()),
                AllOf(HasSubstr("stopped by ann (10.0.0.7:5): enough"),
                      HasSubstr("atoll-coordinator --data-dir COPY")));
  }
}

TEST(AdminRun, AStoppedRunWithNothingInItIsOverAtOnce) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kStop, "").ok());
  EXPECT_EQ(run.Pull(workers[0], 0)->outcome, PullOutcome::kRunFinished);
  EXPECT_EQ(run.coordinator().GetStatus(0).fragments[0].version, Version(0));
}

TEST(AdminRun, ARunThatNobodySeededCanBeStopped) {
  TestRun run;
  const MemberRef worker = run.Join("a");
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kStop, "").ok());
  EXPECT_EQ(run.Pull(worker)->outcome, PullOutcome::kRunFinished);
  const auto seeded = run.Seed(worker, Ones());
  EXPECT_EQ(seeded.status().code(), absl::StatusCode::kFailedPrecondition) << seeded.status();
}

TEST(AdminRun, ARoundIsClosedWithWhatArrivedWhenAnOperatorSaysSo) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  const auto nothing = run.admin().ControlRun(kAnn, RunAction::kCloseRound, "");
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(nothing.status().message()), HasSubstr("nothing has arrived"));
  ASSERT_TRUE(run.Push(workers[0], 0, Step()).ok());
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kCloseRound, "b is slow").ok());
  EXPECT_EQ(run.Pull(workers[0], 0)->snapshot->version, Version(1));
  EXPECT_EQ(events.WaitFor(EventKind::kRoundClosed)->round->close_reason,
            "closed by ann (10.0.0.7:5): b is slow");
  ASSERT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "").ok());
  EXPECT_FALSE(run.admin().ControlRun(kAnn, RunAction::kCloseRound, "").ok()) << "not while paused";
}

TEST(AdminRun, EveryActionIsOnRecordWithWhoAndWhatCameOfIt) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  EXPECT_FALSE(run.admin().ControlRun(kAnn, RunAction::kResume, "").ok());
  ASSERT_TRUE(run.admin().ControlRun(AdminCaller{}, RunAction::kPause, "why not").ok());
  EXPECT_THAT(
      events.WaitFor(EventKind::kAdminAction, 0)->message,
      AllOf(HasSubstr("ann (10.0.0.7:5): resume: refused, FAILED_PRECONDITION"), HasSubstr("not paused")));
  EXPECT_THAT(events.WaitFor(EventKind::kAdminAction, 1)->message,
              HasSubstr("someone: pause (why not): the run is paused"));
}

TEST(AdminRun, TheRecordSaysWhoWasProvenAndHow) {
  const std::string peer = "10.0.0.7:5";
  for (const auto& [caller, name] : std::vector<std::pair<AdminCaller, std::string>>{
           {{}, "someone"},
           {{.user = "ann", .peer = {}}, "ann"},
           {{.user = "ann", .peer = peer}, "ann (10.0.0.7:5)"},
           {{.user = {}, .peer = peer, .proven = "ann", .how = "token"}, "ann (token, 10.0.0.7:5)"},
           {{.user = "ann", .peer = peer, .proven = "ann", .how = "certificate"},
            "ann (certificate, 10.0.0.7:5)"},
           {{.user = "root", .peer = peer, .proven = "ann", .how = "token"},
            "ann (token, calls itself root, 10.0.0.7:5)"},
           {{.user = "root", .peer = peer, .proven = {}, .how = "certificate"},
            "someone (certificate, calls itself root, 10.0.0.7:5)"},
           {{.user = {}, .peer = peer, .proven = "ann", .how = "token", .by = "web"},
            "ann (token, by web, 10.0.0.7:5)"}}) {
    EXPECT_EQ(CallerName(caller), name);
  }
}

TEST(AdminRun, WhatCannotBeRecordedIsNotDone) {
  TestRun run;
  run.Begin({"a", "b"}, Ones());
  run.faults().member = true;
  const auto paused = run.admin().ControlRun(kAnn, RunAction::kPause, "");
  EXPECT_EQ(ReasonOf(paused.status()), RejectionReason::kStorageFull) << paused.status();
  EXPECT_NE(run.coordinator().GetStatus(0).state, RunState::kPaused);
  run.faults().member = false;
  EXPECT_TRUE(run.admin().ControlRun(kAnn, RunAction::kPause, "").ok());
}

}  // namespace
}  // namespace atl
