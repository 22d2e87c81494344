#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "server/rejection.h"
#include "tests/fakes/fake_launcher.h"
#include "tests/server/test_run.h"

// Drain, restart, resync, evict, ban, scale: what an operator does to workers.

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using enum WorkerAction;

const AdminCaller kAnn{.user = "ann", .peer = "10.0.0.7:5"};

std::vector<float> Ones() {
  return Fill([](size_t) { return 1.0F; });
}
std::vector<float> Step() {
  return Fill([](size_t) { return 0.01F; });
}

absl::Status Do(TestRun& run, const WorkerName& worker, WorkerAction action, bool at_once = false) {
  return run.admin()
      .ControlWorker(kAnn, {.worker = worker, .action = action, .at_once = at_once, .reason = "because"})
      .status();
}

WorkerView ViewOf(TestRun& run, const WorkerName& name) {
  for (const WorkerView& view : run.coordinator().ListWorkers(true)) {
    if (view.name == name) return view;
  }
  ADD_FAILURE() << "no worker " << name;
  return {};
}

TEST(AdminWorker, DrainIsRepeatedUntilTheWorkerLeaves) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  EXPECT_EQ(run.Heartbeat(workers[0])->command, WorkerCommand::kNone);
  ASSERT_TRUE(Do(run, "a", kDrain, /*at_once=*/true).ok());
  for (int i = 0; i < 2; ++i) {
    const auto beat = run.Heartbeat(workers[0]);
    EXPECT_EQ(beat->command, WorkerCommand::kDrain);
    EXPECT_TRUE(beat->at_once);
  }
  EXPECT_EQ(ViewOf(run, "a").pending_command, WorkerCommand::kDrain);
  EXPECT_EQ(run.Heartbeat(workers[1])->command, WorkerCommand::kNone);
  // What it has done still counts, and the next round does not wait for it.
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, Step()).ok());
  EXPECT_EQ(run.Pull(workers[1], 0)->plan.active_workers, 1);
  ASSERT_TRUE(run.coordinator().Leave(workers[0], "told to").ok());
  EXPECT_EQ(events.WaitFor(EventKind::kWorkerDrained)->worker, "a");
  EXPECT_EQ(ViewOf(run, "a").pending_command, WorkerCommand::kNone);
  EXPECT_EQ(Do(run, "a", kDrain).code(), absl::StatusCode::kFailedPrecondition) << "it has left";
}

TEST(AdminWorker, ADrainedWorkersRoundWaitsForItAndTheEventSaysWhatCounted) {
  CoordinatorOptions options = SmallRun();
  options.run.round.quorum = 0.5;
  options.run.round.grace = Seconds(5);
  TestRun run(options);
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(Do(run, "a", kDrain).ok());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, Step()).ok());
  // It has not heard of the order yet and begins one more round.
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker, 0).ok());
  ASSERT_TRUE(run.Push(workers[1], 1, Step()).ok());
  EXPECT_THAT(run.coordinator().GetStatus(0).fragments[0].missing, testing::ElementsAre("a"));
  ASSERT_TRUE(run.Push(workers[0], 1, Step()).ok());
  ASSERT_TRUE(run.coordinator().Leave(workers[0], "drained").ok());
  EXPECT_THAT(events.WaitFor(EventKind::kWorkerDrained)->message,
              HasSubstr("its last push, on version 1 of fragment 0, counted"));

  const MemberRef again = run.Join("a");
  ASSERT_TRUE(run.Pull(workers[1], 1).ok());
  ASSERT_TRUE(run.Pull(again, 1).ok());
  ASSERT_TRUE(run.Push(workers[1], 2, Step()).ok());
  run.clock().Advance(Seconds(6));
  ASSERT_TRUE(run.Pull(workers[1], 2).ok());
  ASSERT_TRUE(Do(run, "a", kDrain).ok());
  EXPECT_FALSE(run.Push(again, 2, Step()).ok());
  ASSERT_TRUE(run.coordinator().Leave(again, "drained").ok());
  EXPECT_THAT(events.WaitFor(EventKind::kWorkerDrained, 1)->message,
              HasSubstr("its last push, on version 2 of fragment 0, came too late and does not count"));
}

TEST(AdminWorker, CommandsOutliveTheCoordinatorUntilTheyAreObeyed) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c"}, Ones());
  ASSERT_TRUE(Do(run, "a", kDrain, /*at_once=*/true).ok());
  ASSERT_TRUE(Do(run, "b", kRestart).ok());
  ASSERT_TRUE(Do(run, "c", kResync).ok());
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(ViewOf(run, "a").state, "draining");
  const auto drained = run.Heartbeat(workers[0]);
  EXPECT_EQ(drained->command, WorkerCommand::kDrain);
  EXPECT_TRUE(drained->at_once);
  const auto restarted = run.Heartbeat(workers[1]);
  EXPECT_EQ(restarted->command, WorkerCommand::kRestart);
  EXPECT_FALSE(restarted->at_once);
  EXPECT_EQ(run.Heartbeat(workers[2])->command, WorkerCommand::kNone)
      << "it pulls the head with its next round";
  ASSERT_TRUE(run.coordinator().Leave(workers[0], "told to").ok());
  const MemberRef again = run.Join("b");
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.Heartbeat(again)->command, WorkerCommand::kNone) << "what was obeyed is not told again";
  EXPECT_EQ(run.Heartbeat(run.Join("a"))->command, WorkerCommand::kNone);
}

TEST(AdminWorker, ACommandThatCannotBeRecordedIsGivenAndSaysSo) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  run.faults().member = true;
  const auto told = run.admin().ControlWorker(kAnn, {.worker = "a", .action = kDrain, .reason = ""});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(*told, HasSubstr("could not be recorded"));
  EXPECT_EQ(run.Heartbeat(workers[0])->command, WorkerCommand::kDrain);
}

TEST(AdminWorker, RestartIsToldUntilTheNameHasANewLife) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(Do(run, "a", kRestart).ok());
  const auto beat = run.Heartbeat(workers[0]);
  EXPECT_EQ(beat->command, WorkerCommand::kRestart);
  EXPECT_FALSE(beat->at_once);
  const MemberRef again = run.Join("a");
  EXPECT_NE(again.incarnation, workers[0].incarnation);
  EXPECT_EQ(run.Heartbeat(again)->command, WorkerCommand::kNone);
}

TEST(AdminWorker, ADrainIsToldAgainToAWorkerThatJoinsBeforeItHasHeardOfIt) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(Do(run, "a", kDrain, /*at_once=*/true).ok());
  const MemberRef again = run.Join("a");
  ASSERT_NE(again.incarnation, workers[0].incarnation);
  EXPECT_EQ(ViewOf(run, "a").state, "draining");
  EXPECT_EQ(ViewOf(run, "a").pending_command, WorkerCommand::kDrain);
  const auto beat = run.Heartbeat(again);
  EXPECT_EQ(beat->command, WorkerCommand::kDrain);
  EXPECT_TRUE(beat->at_once);
  // The new life is on the disk with its command.
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(ViewOf(run, "a").state, "draining");
  EXPECT_EQ(run.Heartbeat(again)->command, WorkerCommand::kDrain);
  // Only leaving obeys it.
  ASSERT_TRUE(run.coordinator().Leave(again, "drained").ok());
  EXPECT_EQ(run.Heartbeat(run.Join("a"))->command, WorkerCommand::kNone);
  EXPECT_EQ(ViewOf(run, "a").state, "active");
}

TEST(AdminWorker, ALostWorkerThatComesBackInANewLifeStillDrains) {
  TestRun run;
  run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(Do(run, "a", kDrain).ok());
  run.clock().Advance(Seconds(20));
  ASSERT_TRUE(Eventually([&] { return ViewOf(run, "a").state == "lost"; }));
  const MemberRef again = run.Join("a");
  EXPECT_EQ(ViewOf(run, "a").state, "draining");
  EXPECT_EQ(run.Heartbeat(again)->command, WorkerCommand::kDrain);
  // An operator keeps it.
  ASSERT_TRUE(Do(run, "a", kRestart).ok());
  EXPECT_EQ(ViewOf(run, "a").state, "active");
  EXPECT_EQ(run.Heartbeat(run.Join("a"))->command, WorkerCommand::kNone);
}

TEST(AdminWorker, AnEvictedWorkerThatHadToDrainIsToldToDrainWhenItJoinsAgain) {
  TestRun run;
  run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(Do(run, "a", kDrain).ok());
  ASSERT_TRUE(Do(run, "a", kEvict).ok());
  const MemberRef again = run.Join("a");
  EXPECT_EQ(ViewOf(run, "a").state, "draining");
  EXPECT_EQ(run.Heartbeat(again)->command, WorkerCommand::kDrain);
  ASSERT_TRUE(run.coordinator().Leave(again, "drained").ok());
  EXPECT_EQ(run.Heartbeat(run.Join("a"))->command, WorkerCommand::kNone) << "it has obeyed";
  // An eviction without a drain sends nobody away for good.
  ASSERT_TRUE(Do(run, "b", kEvict).ok());
  EXPECT_EQ(run.Heartbeat(run.Join("b"))->command, WorkerCommand::kNone);
}

TEST(AdminWorker, ResyncIsVoidInANewLife) {
  TestRun run;
  run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(Do(run, "a", kResync).ok());
  EXPECT_EQ(run.Heartbeat(run.Join("a"))->command, WorkerCommand::kNone);
}

TEST(AdminWorker, ResyncIsToldUntilTheHeadWasPulled) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(run.Pull(workers[0]).ok());
  ASSERT_TRUE(Do(run, "a", kResync).ok());
  EXPECT_EQ(run.Heartbeat(workers[0])->command, WorkerCommand::kResync);
  ASSERT_TRUE(run.Pull(workers[0]).ok());
  EXPECT_EQ(run.Heartbeat(workers[0])->command, WorkerCommand::kNone);
}

TEST(AdminWorker, AResyncDoesNotCancelACommandThatEndsThisLife) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(Do(run, "a", kDrain, /*at_once=*/true).ok());
  ASSERT_TRUE(Do(run, "b", kRestart).ok());
  const absl::Status drains = Do(run, "a", kResync), restarts = Do(run, "b", kResync);
  EXPECT_EQ(drains.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(drains.message()),
              AllOf(HasSubstr("told to drain"), HasSubstr("atollctl workers restart a")));
  EXPECT_EQ(restarts.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(restarts.message()), HasSubstr("told to restart"));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  EXPECT_EQ(run.Heartbeat(workers[0])->command, WorkerCommand::kDrain);
  EXPECT_TRUE(run.Heartbeat(workers[0])->at_once);
  EXPECT_EQ(run.Heartbeat(workers[1])->command, WorkerCommand::kRestart);
}

TEST(AdminWorker, AnEvictedWorkerIsGoneAtOnceAndItsContributionStays) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, Step()).ok());
  ASSERT_TRUE(Do(run, "a", kEvict).ok());
  EXPECT_EQ(ReasonOf(run.Heartbeat(workers[0]).status()), RejectionReason::kNotAMember);
  EXPECT_THAT(events.WaitFor(EventKind::kWorkerLeft)->message, HasSubstr("removed: evict by ann"));
  ASSERT_TRUE(run.Push(workers[1], 0, Step()).ok());
  EXPECT_EQ(run.Pull(workers[1], 0)->snapshot->version, Version(1));
  EXPECT_EQ(run.coordinator().GetStatus(1).rounds.back().contributions, 2);
  EXPECT_EQ(Do(run, "a", kEvict).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(run.TryJoin("a").ok()) << "its process may join again";
}

TEST(AdminWorker, ABannedNameIsRejectedUntilItIsUnbanned) {
  TestRun run;
  std::optional<EventCatcher> events(std::in_place, &run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(Do(run, "a", kBan).ok());
  EXPECT_EQ(events->WaitFor(EventKind::kWorkerBanned)->worker, "a");
  EXPECT_EQ(ReasonOf(run.Heartbeat(workers[0]).status()), RejectionReason::kNotAMember);
  EXPECT_TRUE(ViewOf(run, "a").banned);
  EXPECT_EQ(Do(run, "a", kBan).code(), absl::StatusCode::kFailedPrecondition);
  events.reset();
  ASSERT_TRUE(run.Restart().ok());
  const auto rejected = run.TryJoin("a");
  EXPECT_EQ(ReasonOf(rejected.status()), RejectionReason::kBanned);
  EXPECT_EQ(rejected.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(run.coordinator().GetStatus(0).refused_joins.size(), 1u);
  ASSERT_TRUE(Do(run, "a", kUnban).ok());
  EXPECT_TRUE(run.coordinator().GetStatus(0).refused_joins.empty()) << "it is welcome again";
  EXPECT_TRUE(run.TryJoin("a").ok());
  EXPECT_EQ(Do(run, "a", kUnban).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_TRUE(run.TryJoin("a").ok());
}

TEST(AdminWorker, ABanThatCannotBeStoredIsNone) {
  TestRun run;
  run.Begin({"a", "b"}, Ones());
  run.faults().member = true;
  EXPECT_EQ(ReasonOf(Do(run, "a", kBan)), RejectionReason::kStorageFull);
  run.faults().member = false;
  EXPECT_FALSE(ViewOf(run, "a").banned);
  EXPECT_TRUE(run.TryJoin("a").ok());
}

TEST(AdminWorker, WhatCannotBeStoredChangesNothing) {
  TestRun run;
  std::optional<EventCatcher> events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c", "d"}, Ones());
  ASSERT_TRUE(run.coordinator().Leave(workers[2], "").ok());
  ASSERT_TRUE(Do(run, "d", kBan).ok());
  run.clock().Advance(Seconds(1));
  const auto forget_old = [&] {
    return run.admin().ControlWorker(
        kAnn, {.worker = {}, .action = kForget, .reason = {}, .older_than = Seconds(0.5)});
  };
  const auto before = [&] {
    EXPECT_EQ(ViewOf(run, "a").state, "active");
    EXPECT_EQ(ViewOf(run, "b").state, "active");
    EXPECT_FALSE(ViewOf(run, "b").banned);
    EXPECT_EQ(ViewOf(run, "c").state, "left");
    EXPECT_TRUE(ViewOf(run, "d").banned);
  };
  before();
  run.faults().member = true;
  EXPECT_EQ(ReasonOf(Do(run, "a", kEvict)), RejectionReason::kStorageFull);
  EXPECT_EQ(ReasonOf(Do(run, "b", kBan)), RejectionReason::kStorageFull);
  EXPECT_EQ(ReasonOf(Do(run, "c", kForget)), RejectionReason::kStorageFull);
  EXPECT_EQ(ReasonOf(Do(run, "d", kUnban)), RejectionReason::kStorageFull);
  EXPECT_EQ(ReasonOf(forget_old().status()), RejectionReason::kStorageFull);
  run.faults().member = false;
  before();
  EXPECT_TRUE(run.Heartbeat(workers[0]).ok());
  EXPECT_TRUE(run.Heartbeat(workers[1]).ok());
  EXPECT_TRUE(events->WaitFor(EventKind::kAdminAction, /*nth=*/5).has_value());
  for (const EventView& event : events->events()) {
    const bool told = event.kind == EventKind::kWorkerLeft || event.kind == EventKind::kWorkerBanned;
    EXPECT_TRUE(!told || event.worker == "c" || event.worker == "d") << event.message;
  }
  events.reset();
  ASSERT_TRUE(run.Restart().ok());
  before();
  // The same when it can be stored, also after a restart.
  ASSERT_TRUE(Do(run, "a", kEvict).ok());
  ASSERT_TRUE(Do(run, "b", kBan).ok());
  ASSERT_TRUE(Do(run, "c", kForget).ok());
  ASSERT_TRUE(Do(run, "d", kUnban).ok());
  for (int life = 0; life < 2; ++life) {
    if (life == 1) {
      ASSERT_TRUE(run.Restart().ok());
    }
    EXPECT_EQ(ViewOf(run, "a").state, "left");
    EXPECT_EQ(ViewOf(run, "b").state, "left");
    EXPECT_TRUE(ViewOf(run, "b").banned);
    EXPECT_FALSE(ViewOf(run, "d").banned);
    EXPECT_EQ(Do(run, "c", kEvict).code(), absl::StatusCode::kNotFound);
  }
}

TEST(AdminWorker, WhatMakesNoSenseIsRejectedWithTheReason) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  run.Join("eyes", WorkerRole::kObserver);
  for (const WorkerAction action : {kDrain, kRestart, kEvict, kBan, kUnban, kResync, kForget}) {
    EXPECT_EQ(Do(run, "nobody", action).code(), absl::StatusCode::kNotFound) << static_cast<int>(action);
    EXPECT_EQ(Do(run, "No Name", action).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Do(run, "eyes", kDrain).code(), absl::StatusCode::kNotFound) << "an observer is no member";
  ASSERT_TRUE(run.coordinator().Leave(workers[1], "").ok());
  const absl::Status gone = Do(run, "b", kRestart);
  EXPECT_EQ(gone.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(gone.message()),
              HasSubstr("is left, and it is none that this coordinator launched"));
  const auto scaled = run.admin().ScaleWorkers(kAnn, 2, std::nullopt);
  EXPECT_EQ(scaled.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(scaled.status().message()), HasSubstr("--launcher"));
  EXPECT_EQ(run.admin().Launched().kind, "none");
}

TEST(AdminWorker, AForgottenNameIsNew) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c"}, Ones());
  EXPECT_EQ(Do(run, "b", kForget).code(), absl::StatusCode::kFailedPrecondition) << "it is live";
  for (const size_t i : {size_t{1}, size_t{2}}) ASSERT_TRUE(run.coordinator().Leave(workers[i], "").ok());
  EXPECT_EQ(run.TryJoin("b", "another secret").status().code(), absl::StatusCode::kOk)
      << "a departed worker's name may be taken";
  ASSERT_TRUE(Do(run, "b", kEvict).ok());
  ASSERT_TRUE(Do(run, "b", kBan).ok());
  EXPECT_EQ(Do(run, "b", kForget).code(), absl::StatusCode::kFailedPrecondition)
      << "the ban would go with it";
  ASSERT_TRUE(Do(run, "b", kUnban).ok());
  ASSERT_TRUE(Do(run, "b", kForget).ok());
  ASSERT_TRUE(Do(run, "c", kForget).ok());
  ASSERT_EQ(run.coordinator().ListWorkers(true).size(), 1u);
  ASSERT_TRUE(run.Restart().ok());
  ASSERT_EQ(run.coordinator().ListWorkers(true).size(), 1u) << "on disk too";
  const auto back = run.TryJoin("b");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(back->returning);
  EXPECT_GT(back->member.incarnation, Incarnation(4)) << "no incarnation is issued twice";
}

TEST(AdminWorker, DepartedWorkersAreForgottenByAge) {
  CoordinatorOptions options = SmallRun();
  options.run.forget_workers_after = Seconds(3600);
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c"}, Ones());
  ASSERT_TRUE(run.coordinator().Leave(workers[1], "").ok());
  run.clock().Advance(Seconds(600));
  ASSERT_TRUE(run.Heartbeat(workers[0]).ok());
  ASSERT_TRUE(run.coordinator().Leave(workers[2], "").ok());
  run.clock().Advance(Seconds(2000));
  const auto forgotten = run.admin().ControlWorker(
      kAnn, {.worker = "", .action = kForget, .reason = "old", .older_than = Seconds(2500)});
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_THAT(*forgotten, HasSubstr("1 worker is forgotten"));
  EXPECT_EQ(run.coordinator().ListWorkers(true).size(), 2u);
  ASSERT_TRUE(run.Heartbeat(workers[0]).ok());
  run.clock().Advance(Seconds(2000));
  EXPECT_TRUE(Eventually([&] { return run.coordinator().ListWorkers(true).size() == 1; })) << "c, by itself";
}

TEST(AdminWorker, ObserversLeaveNothingBehind) {
  TestRun run;
  auto events = std::make_unique<EventCatcher>(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  ASSERT_TRUE(events->WaitFor(EventKind::kSeeded).has_value());
  const size_t seen = events->events().size();
  const uint64_t traffic = run.coordinator().GetStatus(0).pull_bytes;
  // More of them than there are places for workers, one under a worker's name.
  for (int i = 0; i < 50; ++i) run.Join("eyes-" + std::to_string(i), WorkerRole::kObserver);
  const MemberRef eyes = run.Join("a", WorkerRole::kObserver);
  EXPECT_EQ(run.Pull(eyes)->outcome, PullOutcome::kParameters);
  ASSERT_TRUE(run.Heartbeat(eyes).ok());
  EXPECT_EQ(run.Push(eyes, 0, Step()).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(run.coordinator().Leave(eyes, "done").ok());
  EXPECT_EQ(run.coordinator().ListWorkers(true).size(), 2u);
  EXPECT_TRUE(run.Heartbeat(workers[0]).ok()) << "nobody took its name";
  EXPECT_EQ(run.coordinator().GetStatus(0).pull_bytes, traffic);
  EXPECT_EQ(events->events().size(), seen);
  events.reset();
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().ListWorkers(true).size(), 2u);
  EXPECT_TRUE(run.Pull(eyes).ok()) << "there is nothing that a restart could forget";
}

class AdminLauncher : public testing::Test {
 protected:
  std::shared_ptr<FakeLauncher::Log> log_ = std::make_shared<FakeLauncher::Log>();
  TestRun run_{SmallRun(), {.make_launcher = [log = log_] { return std::make_unique<FakeLauncher>(log); }}};

  std::vector<std::string> restarted() {
    MutexLock lock(&log_->mutex);
    return log_->restarted;
  }

  void SetAway(bool away, const absl::Status& answer = absl::OkStatus()) {
    MutexLock lock(&log_->mutex);
    log_->away = away;
    log_->answer = answer;
    log_->changed.NotifyAll();
  }
  void AwaitAsked(int times) {
    MutexLock lock(&log_->mutex);
    while (log_->asked < times) log_->changed.Wait(&log_->mutex);
  }
};

TEST_F(AdminLauncher, RestartsWhoDoesNotAnswerAndTellsWhoDoes) {
  const std::vector<MemberRef> workers = run_.Begin({"w-0", "w-1"}, Ones());
  ASSERT_TRUE(Do(run_, "w-0", kRestart).ok());
  EXPECT_TRUE(restarted().empty()) << "it is live: its heartbeat tells it";
  EXPECT_EQ(run_.Heartbeat(workers[0])->command, WorkerCommand::kRestart);
  ASSERT_TRUE(run_.coordinator().Leave(workers[1], "").ok());
  ASSERT_TRUE(Do(run_, "w-1", kRestart).ok());
  ASSERT_TRUE(Do(run_, "w-9", kRestart).ok()) << "never joined, but the launcher's";
  EXPECT_EQ(restarted(), (std::vector<std::string>{"w-1", "w-9"}));
}

TEST_F(AdminLauncher, OneThatIsLostBeforeItObeysIsEnded) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 3).ok());
  run_.Begin({"w-0", "w-1"}, Ones());
  run_.Join("w-2");
  ASSERT_TRUE(Do(run_, "w-0", kRestart).ok());
  ASSERT_TRUE(Do(run_, "w-1", kDrain).ok());
  run_.clock().Advance(run_.options().run.round.lease + Seconds(1));
  MutexLock lock(&log_->mutex);
  while (log_->lost.size() < 2) log_->changed.Wait(&log_->mutex);
  EXPECT_THAT(log_->lost, UnorderedElementsAre(Pair("w-0", true), Pair("w-1", false)))
      << "w-2 was told nothing: it may come back";
}

TEST_F(AdminLauncher, OneThatIsStartingIsNotRestartedAgain) {
  using State = LaunchedWorker::State;
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  const std::vector<MemberRef> workers = run_.Begin({"w-0", "w-1"}, Ones());
  const auto set_age = [this](double seconds) {
    MutexLock lock(&log_->mutex);
    log_->age = Seconds(seconds);
  };
  const auto states = [this] {
    std::vector<State> all;
    for (const LaunchedWorker& worker : run_.admin().Launched().workers) all.push_back(worker.state);
    return all;
  };
  run_.clock().Advance(Seconds(3));
  set_age(10);
  EXPECT_THAT(states(), ElementsAre(State::kRunning, State::kRunning));
  ASSERT_TRUE(run_.admin().ControlWorker(kAnn, {.worker = "w-1", .action = kEvict, .reason = ""}).ok());
  EXPECT_THAT(states(), ElementsAre(State::kRunning, State::kAbsent)) << "its process runs on, and hangs";
  ASSERT_TRUE(Do(run_, "w-1", kRestart).ok());
  EXPECT_EQ(restarted(), std::vector<std::string>{"w-1"}) << "it had joined";
  set_age(1);  // of the new process
  EXPECT_THAT(states(), ElementsAre(State::kRunning, State::kRunning)) << "not joined yet";
  const auto again = run_.admin().ControlWorker(kAnn, {.worker = "w-1", .action = kRestart, .reason = ""});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(*again, HasSubstr("'w-1' is already restarting: its process started 1.0 s ago"));
  EXPECT_EQ(restarted().size(), 1u);
  run_.clock().Advance(Seconds(100));
  set_age(90);
  ASSERT_TRUE(Do(run_, "w-1", kRestart).ok());
  EXPECT_EQ(restarted().size(), 2u) << "it does not get as far as joining";
}

TEST_F(AdminLauncher, AWorkerThatHasNotJoinedIsNotDrained) {
  run_.Begin({"w-0"}, Ones());
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  const absl::Status rejected = Do(run_, "w-1", kDrain);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(rejected.message()),
              AllOf(HasSubstr("'w-1' has not joined the run yet"), HasSubstr("atollctl workers scale 1")));
  EXPECT_EQ(run_.admin().Launched().target, 2) << "it stays wanted";
  EXPECT_EQ(Do(run_, "w-9", kDrain).code(), absl::StatusCode::kNotFound) << "nobody wants it";
  run_.Join("w-1");
  EXPECT_TRUE(Do(run_, "w-1", kDrain).ok());
  EXPECT_EQ(run_.admin().Launched().target, 1);
}

TEST_F(AdminLauncher, ADrainWhoseNumberCannotBeRecordedIsGivenAndSaysSo) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  const std::vector<MemberRef> workers = run_.Begin({"w-0", "w-1"}, Ones());
  run_.faults().member = true;
  const auto told = run_.admin().ControlWorker(kAnn, {.worker = "w-1", .action = kDrain, .reason = ""});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(*told, HasSubstr("the number of workers could not be recorded"));
  EXPECT_EQ(run_.Heartbeat(workers[1])->command, WorkerCommand::kDrain);
}

TEST_F(AdminLauncher, ABannedWorkerIsNotRestarted) {
  run_.Begin({"w-0", "w-1"}, Ones());
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  ASSERT_TRUE(Do(run_, "w-1", kBan).ok());
  const absl::Status rejected = Do(run_, "w-1", kRestart);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(rejected.message()),
              AllOf(HasSubstr("'w-1' is banned"), HasSubstr("atollctl workers unban w-1")));
  EXPECT_TRUE(restarted().empty());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(Do(run_, "w-1", kRestart).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Do(run_, "w-1", kUnban).ok());
  EXPECT_TRUE(Do(run_, "w-1", kRestart).ok());
  EXPECT_EQ(restarted(), std::vector<std::string>{"w-1"});
}

TEST_F(AdminLauncher, WhatWasScaledToIsWantedAgainAfterARestart) {
  run_.options().launch_workers = 2;
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 2) << "as the start says";
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 5).ok());
  ASSERT_TRUE(run_.admin().ControlRun(kAnn, RunAction::kPause, "").ok());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 5) << "a supervisor starts it as before";
  EXPECT_EQ(run_.coordinator().GetStatus(0).state, RunState::kPaused);
  run_.options().launch_workers = 3;
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 3) << "somebody has changed the start since";
}

TEST_F(AdminLauncher, ADrainingWorkerThatIsToldToRestartIsWantedAgain) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  const std::vector<MemberRef> workers = run_.Begin({"w-0", "w-1"}, Ones());
  ASSERT_TRUE(Do(run_, "w-0", kDrain).ok());
  EXPECT_EQ(run_.admin().Launched().target, 1);
  const auto told = run_.admin().ControlWorker(kAnn, {.worker = "w-0", .action = kRestart, .reason = ""});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(*told, HasSubstr("2 wanted now"));
  EXPECT_EQ(run_.Heartbeat(workers[0])->command, WorkerCommand::kRestart);
  EXPECT_EQ(run_.admin().Launched().target, 2);
  EXPECT_TRUE(run_.admin().Launched().drained.empty());
  EXPECT_TRUE(restarted().empty()) << "it restarts by itself";
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 2) << "it is recorded";
}

TEST_F(AdminLauncher, ADrainThatWasTakenBackStaysSoBeforeTheWorkerHasJoined) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  const std::vector<MemberRef> workers = run_.Begin({"w-0", "w-1"}, Ones());
  ASSERT_TRUE(Do(run_, "w-0", kDrain).ok());
  ASSERT_TRUE(run_.coordinator().Leave(workers[0], "drained").ok());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().DrainedWorkers(), std::vector<WorkerName>{"w-0"}) << "a restart keeps a drain";
  ASSERT_TRUE(Do(run_, "w-0", kRestart).ok());
  EXPECT_TRUE(run_.admin().DrainedWorkers().empty());
  // It goes again before it has joined: it is not drained, only not wanted.
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 1).ok());
  EXPECT_TRUE(run_.admin().Launched().drained.empty());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_TRUE(run_.admin().DrainedWorkers().empty());
  EXPECT_EQ(run_.admin().WantedWorkers(), 1);
}

TEST_F(AdminLauncher, ADrainedWorkerThatIsRemovedBeforeItObeysStaysDrained) {
  for (const WorkerAction removal : {kEvict, kBan}) {
    const WorkerName name = removal == kEvict ? "w-0" : "w-1";
    if (removal == kEvict) {
      ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 3).ok());
      run_.Begin({"w-0", "w-1", "w-2"}, Ones());
    }
    ASSERT_TRUE(Do(run_, name, kDrain).ok());
    ASSERT_TRUE(Do(run_, name, removal).ok());
    ASSERT_TRUE(run_.Restart().ok());
    EXPECT_THAT(run_.admin().DrainedWorkers(), ::testing::Contains(name));
  }
  ASSERT_TRUE(Do(run_, "w-1", kUnban).ok());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_THAT(run_.admin().DrainedWorkers(), ::testing::ElementsAre("w-0", "w-1"));
  EXPECT_EQ(run_.admin().WantedWorkers(), 1);
}

TEST_F(AdminLauncher, ADrainThatTheWorkerHadNoTimeToObeyIsKept) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  run_.Begin({"w-0", "w-1"}, Ones());
  ASSERT_TRUE(Do(run_, "w-0", kDrain).ok());
  // Its process dies with the coordinator, so nobody is left to obey.
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().DrainedWorkers(), std::vector<WorkerName>{"w-0"});
  const auto lost = [&] { return ViewOf(run_, "w-0").state == "lost"; };
  run_.clock().Advance(Seconds(20));
  ASSERT_TRUE(Eventually(lost));
  EXPECT_EQ(run_.admin().DrainedWorkers(), std::vector<WorkerName>{"w-0"});
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().DrainedWorkers(), std::vector<WorkerName>{"w-0"}) << "also the second time";
  ASSERT_TRUE(Do(run_, "w-0", kRestart).ok());
  EXPECT_TRUE(run_.admin().DrainedWorkers().empty());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_TRUE(run_.admin().DrainedWorkers().empty());
}

TEST_F(AdminLauncher, ALostWorkerThatIsWantedAgainIsNotToldToDrain) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  const std::vector<MemberRef> workers = run_.Begin({"w-0", "w-1"}, Ones());
  ASSERT_TRUE(Do(run_, "w-0", kDrain).ok());
  run_.clock().Advance(Seconds(20));
  ASSERT_TRUE(Eventually([&] { return ViewOf(run_, "w-0").state == "lost"; }));
  ASSERT_TRUE(Do(run_, "w-0", kRestart).ok());
  EXPECT_TRUE(run_.admin().DrainedWorkers().empty());
  const auto back = run_.Heartbeat(workers[0]);  // it was only silent
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->command, WorkerCommand::kNone);
}

class BoundedLauncher : public testing::Test {
 protected:
  void Begin(uint32_t partitions, uint32_t max_workers) {
    CoordinatorOptions options = SmallRun();
    options.run.data.partitions = partitions;
    options.run.max_workers = max_workers;
    run_.emplace(options,
                 TestParts{.make_launcher = [log = log_] { return std::make_unique<FakeLauncher>(log); }});
    ASSERT_TRUE(Scale(2).ok());
    workers_ = run_->Begin({"w-0", "w-1"}, Ones());
    ASSERT_TRUE(Do(*run_, "w-1", kDrain).ok());
    // Another one in its place.
    ASSERT_TRUE(Scale(2).ok());
  }
  absl::Status Scale(uint32_t target) {
    return run_->admin().ScaleWorkers(kAnn, std::nullopt, target).status();
  }

  std::shared_ptr<FakeLauncher::Log> log_ = std::make_shared<FakeLauncher::Log>();
  std::optional<TestRun> run_;
  std::vector<MemberRef> workers_;
};

TEST_F(BoundedLauncher, ARestartOfADrainedWorkerNeedsAPartOfTheData) {
  Begin(/*partitions=*/2, /*max_workers=*/10);
  const absl::Status draining = Do(*run_, "w-1", kRestart);
  EXPECT_EQ(draining.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(draining.message()), AllOf(HasSubstr("restart: 3 workers"), HasSubstr("2 parts")));
  EXPECT_EQ(run_->Heartbeat(workers_[1])->command, WorkerCommand::kDrain) << "it drains on";
  ASSERT_TRUE(run_->coordinator().Leave(workers_[1], "drained").ok());
  EXPECT_EQ(Do(*run_, "w-1", kRestart).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(run_->admin().Launched().wanted, (std::vector<WorkerName>{"w-0", "w-2"}));
  ASSERT_TRUE(Scale(1).ok());
  EXPECT_TRUE(Do(*run_, "w-1", kRestart).ok());
}

TEST_F(BoundedLauncher, ARestartOfADrainedWorkerStaysWithinTheLimitOfWorkers) {
  Begin(/*partitions=*/8, /*max_workers=*/2);
  ASSERT_TRUE(run_->coordinator().Leave(workers_[1], "drained").ok());
  const absl::Status rejected = Do(*run_, "w-1", kRestart);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("limits.max_workers, which is 2"));
  EXPECT_EQ(run_->admin().Launched().target, 2);
}

TEST_F(AdminLauncher, AStartWithMoreWorkersThanCanWorkIsRejected) {
  run_.options().launch_workers = 9;
  const absl::Status parts = run_.Restart();
  EXPECT_EQ(parts.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(parts.message()), AllOf(HasSubstr("--launch-workers"), HasSubstr("8 parts")));
  run_.options().launch_workers = 1001;
  const absl::Status limit = run_.Restart();
  EXPECT_EQ(limit.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(limit.message()), HasSubstr("limits.max_workers, which is 1000"));
  run_.options().launch_workers = 8;
  EXPECT_TRUE(run_.Restart().ok());
}

TEST_F(AdminLauncher, OfARememberedNumberOnlyThoseThatCanWorkAreStarted) {
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 7).ok());
  run_.options().run.max_workers = 5;
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 5);
  run_.options().run.data.partitions = 3;
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 3);
}

TEST(AdminWorker, ARunWithoutALauncherDoesNotCheckItsWorkers) {
  CoordinatorOptions options = SmallRun();
  options.launch_workers = 9;
  TestRun run(options);
  EXPECT_TRUE(run.Restart().ok());
}

TEST_F(AdminLauncher, OtherActionsDoNotWaitForALauncherThatDoesNotAnswer) {
  run_.Begin({"a", "b", "w-0"}, Ones());
  SetAway(true);
  auto scaling = std::async(std::launch::async,
                            [this] { return run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).status(); });
  AwaitAsked(1);
  auto others = std::async(std::launch::async, [this] {
    absl::Status done = Do(run_, "a", kDrain);
    for (const WorkerAction action : {kResync, kBan, kUnban}) done.Update(Do(run_, "b", action));
    done.Update(run_.admin().ControlRun(kAnn, RunAction::kPause, "").status());
    return done;
  });
  EXPECT_EQ(others.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  SetAway(false, absl::UnavailableError("no route"));
  EXPECT_TRUE(absl::IsUnavailable(scaling.get()));
  EXPECT_TRUE(others.get().ok());
  EXPECT_EQ(run_.admin().WantedWorkers(), 0u) << "refused, so not remembered";
  EXPECT_EQ(run_.coordinator().GetStatus(0).state, RunState::kPaused) << "the pause stays";
}

TEST_F(AdminLauncher, WhatIsRememberedIsWhatTheLauncherWasAskedForLast) {
  run_.Begin({"w-0", "w-1", "w-2"}, Ones());
  ASSERT_TRUE(run_.admin().ScaleWorkers(kAnn, std::nullopt, 2).ok());
  SetAway(true);
  auto scaling = std::async(std::launch::async,
                            [this] { return run_.admin().ScaleWorkers(kAnn, std::nullopt, 3).status(); });
  AwaitAsked(2);
  auto draining = std::async(std::launch::async, [this] { return Do(run_, "w-1", kDrain); });
  auto restarting = std::async(std::launch::async, [this] { return Do(run_, "w-9", kRestart); });
  SetAway(false);
  EXPECT_TRUE(scaling.get().ok());
  EXPECT_TRUE(draining.get().ok());
  EXPECT_TRUE(restarting.get().ok());
  EXPECT_EQ(run_.admin().Launched().target, 2u);
  EXPECT_EQ(run_.admin().WantedWorkers(), 2u);
}

TEST(AdminLaunch, ARestoreIntoAFinishedRunStartsItsWorkersAgain) {
  const auto log = std::make_shared<FakeLauncher::Log>();
  CoordinatorOptions options = SmallRun();
  options.run.rounds = 2;
  TestRun run(options, {.make_launcher = [log] { return std::make_unique<FakeLauncher>(log); }});
  const auto started_again = [&] {
    const MutexLock lock(&log->mutex);
    return log->started_again;
  };
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  const auto round = [&](uint64_t base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, base, Step()).ok());
    ASSERT_TRUE(run.Pull(workers[0], base).ok());
    run.WaitForStored(base + 1);
  };
  round(0);
  ASSERT_TRUE(run.admin().CreateCheckpoint(kAnn, "one").ok());
  round(1);
  ASSERT_EQ(run.coordinator().GetStatus(0).state, RunState::kFinished);
  EXPECT_EQ(started_again(), 0);
  ASSERT_TRUE(run.admin().RestoreCheckpoint(kAnn, "one").ok());
  EXPECT_NE(run.coordinator().GetStatus(0).state, RunState::kFinished);
  EXPECT_EQ(started_again(), 1);
  ASSERT_TRUE(run.admin().RestoreCheckpoint(kAnn, "one").ok());
  EXPECT_EQ(started_again(), 1) << "nobody had left";
}

TEST_F(AdminLauncher, AStoppedRunStartsNoWorkers) {
  ASSERT_TRUE(run_.admin().ControlRun(kAnn, RunAction::kStop, "enough").ok());
  const auto stopped = AllOf(HasSubstr("the run is stopped by ann"), HasSubstr("enough"));
  EXPECT_THAT(std::string(Do(run_, "w-0", kRestart).message()), stopped);
  EXPECT_THAT(std::string(run_.admin().ScaleWorkers(kAnn, std::nullopt, 5).status().message()), stopped);
  EXPECT_THAT(std::string(run_.admin().ScaleWorkers(kAnn, 1, std::nullopt).status().message()), stopped);
  const MutexLock lock(&log_->mutex);
  EXPECT_TRUE(log_->restarted.empty());
}

TEST_F(AdminLauncher, AddsAndScales) {
  const auto added = run_.admin().ScaleWorkers(kAnn, 3, std::nullopt);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(added->before, 0);
  EXPECT_EQ(added->target, 3);
  EXPECT_EQ(added->names, (std::vector<WorkerName>{"w-0", "w-1", "w-2"}));
  const auto scaled = run_.admin().ScaleWorkers(kAnn, std::nullopt, 1);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->target, 1);
  EXPECT_EQ(run_.admin().Launched().workers.size(), 3) << "the others have not ended yet";
  EXPECT_EQ(scaled->names, (std::vector<WorkerName>{"w-0"}));
  using absl::StatusCode;
  const auto code = [&](std::optional<uint32_t> add, std::optional<uint32_t> target) {
    return run_.admin().ScaleWorkers(kAnn, add, target).status().code();
  };
  EXPECT_EQ(code(0, std::nullopt), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(1, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::nullopt, std::nullopt), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::nullopt, 1001), StatusCode::kInvalidArgument) << "limits.max_workers is 1000";
  EXPECT_EQ(code(4294967295U, std::nullopt), StatusCode::kInvalidArgument);
  EXPECT_EQ(run_.admin().Launched().target, 1) << "what was refused changed nothing";
}

}  // namespace
}  // namespace atl
