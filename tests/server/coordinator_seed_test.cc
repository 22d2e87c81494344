#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "server/rejection.h"
#include "tests/server/test_run.h"

// How parameters enter, once.

namespace atl {
namespace {

using ::testing::HasSubstr;

std::vector<float> Ones() {
  return Fill([](size_t) { return 1.0F; });
}

TEST(CoordinatorSeed, AsksForTheConfigurationWithoutJoining) {
  TestRun run;
  JoinCall call;
  call.worker = "a";
  call.secret = "0123456789abcdef";
  const auto asked = run.coordinator().Join(call);
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->config_bytes, "config-1");
  EXPECT_EQ(asked->member.incarnation, Incarnation(0));
  EXPECT_FALSE(asked->seed_granted);
  EXPECT_TRUE(run.coordinator().ListWorkers(true).empty());
  EXPECT_EQ(ReasonOf(run.Heartbeat(asked->member).status()), RejectionReason::kNotAMember);
}

TEST(CoordinatorSeed, TheGrantPassesOnWhenItsHolderDies) {
  TestRun run;
  EXPECT_TRUE(run.TryJoin("b")->seed_granted) << "the first one";
  const auto second = run.TryJoin("a");
  EXPECT_FALSE(second->seed_granted);
  const MemberRef caller = second->member;
  EXPECT_EQ(ReasonOf(run.Seed(caller, Ones()).status()), RejectionReason::kNotSeeded);
  run.clock().Advance(Seconds(10));
  EXPECT_FALSE(run.Heartbeat(caller)->seed_granted);
  EventCatcher events(&run.coordinator());
  run.clock().Advance(Seconds(10));
  EXPECT_EQ(events.WaitFor(EventKind::kWorkerLost)->worker, "b");
  EXPECT_TRUE(run.Heartbeat(caller)->seed_granted);
  EXPECT_TRUE(run.Seed(caller, Ones()).ok());
  EXPECT_FALSE(run.Heartbeat(caller)->seed_granted);
}

TEST(CoordinatorSeed, AHolderThatLostTheGrantDuringItsUploadIsRejected) {
  TestRun run;
  const MemberRef first = run.Join("a");
  const MemberRef second = run.Join("b");
  auto session = run.coordinator().StartSeed(first, SmallManifest());
  ASSERT_TRUE(session.ok());
  const std::vector<float> values = Ones();
  ASSERT_TRUE((*session)->Append(FragmentId(0), 0, AsBytes(values)).ok());
  ASSERT_TRUE(run.coordinator().Leave(first, "").ok());
  EXPECT_EQ(ReasonOf((*session)->Finish().status()), RejectionReason::kNotAMember);
  EXPECT_TRUE(run.Seed(second, values).ok());
}

TEST(CoordinatorSeed, TheGrantPassesOnWhenUploadsBreakOff) {
  TestRun run;
  const MemberRef first = run.Join("a");
  const std::vector<float> values = Ones();
  const auto break_off = [&](const MemberRef& worker) {
    auto session = run.coordinator().StartSeed(worker, SmallManifest());
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Append(FragmentId(0), 0, AsBytes(values).first(16)).ok());
  };
  for (int i = 0; i < 4; ++i) break_off(first);
  EXPECT_TRUE(run.Heartbeat(first)->seed_granted) << "there is nobody else";
  const MemberRef second = run.Join("b");
  EXPECT_FALSE(run.Heartbeat(second)->seed_granted);
  EXPECT_THAT(run.coordinator().GetStatus(0).waiting.front().what,
              HasSubstr("its upload has broken off 4 times"));
  break_off(first);
  EXPECT_FALSE(run.Heartbeat(first)->seed_granted);
  EXPECT_TRUE(run.Heartbeat(second)->seed_granted);
  EXPECT_TRUE(run.Seed(second, values).ok());
}

TEST(CoordinatorSeed, TheGrantPassesOnWhenSeedsCannotBeUsed) {
  TestRun run;
  const MemberRef first = run.Join("a");
  const MemberRef second = run.Join("b");
  std::vector<float> bad = Ones();
  bad[7] = std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(run.Heartbeat(first)->seed_granted);
    EXPECT_EQ(ReasonOf(run.Seed(first, bad).status()), RejectionReason::kNotFinite);
  }
  EXPECT_FALSE(run.Heartbeat(first)->seed_granted);
  EXPECT_TRUE(run.Heartbeat(second)->seed_granted);
  EXPECT_TRUE(run.Seed(second, Ones()).ok());
}

TEST(CoordinatorSeed, HappensOnce) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  EXPECT_TRUE(absl::IsAlreadyExists(run.Seed(workers[0], Ones()).status()));
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(run.Seed(workers[0], Ones()).status()));
  EXPECT_EQ(run.Published(workers[0], std::nullopt), Ones());
}

TEST(CoordinatorSeed, WhatIsWrongIsRejectedAndNothingIsSeeded) {
  TestRun run;
  const MemberRef caller = run.Join("a");
  std::vector<float> values = Ones();
  values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ReasonOf(run.Seed(caller, values).status()), RejectionReason::kNotFinite);
  values = Ones();
  values[400] = 1;
  EXPECT_EQ(ReasonOf(run.Seed(caller, values).status()), RejectionReason::kWrongSize)
      << "between two tensors";
  Manifest other = SmallManifest();
  other.tensors[0].name = "c";
  EXPECT_EQ(ReasonOf(run.coordinator().StartSeed(caller, other).status()),
            RejectionReason::kManifestMismatch);
  auto session = run.coordinator().StartSeed(caller, SmallManifest());
  EXPECT_EQ(ReasonOf((*session)->Append(FragmentId(0), 64, AsBytes(values))), RejectionReason::kBadChunk);
  EXPECT_EQ(ReasonOf((*session)->Finish().status()), RejectionReason::kWrongSize) << "it is not complete";
  EXPECT_EQ(run.Pull(caller, std::nullopt, FragmentId(0), Duration(0))->outcome, PullOutcome::kNotYet);
  EXPECT_EQ(ReasonOf(run.Push(caller, 0, Ones()).status()), RejectionReason::kNotSeeded);
  EXPECT_TRUE(run.Seed(caller, Ones()).ok());
}

TEST(CoordinatorSeed, ADiskThatRejectsItIsShownUntilItTakesIt) {
  TestRun run;
  EventCatcher events(&run.coordinator());
  const MemberRef seeder = run.Join("a");
  run.faults().seed = true;
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(ReasonOf(run.Seed(seeder, Ones()).status()), RejectionReason::kStorageFull);
  }
  const auto failing = events.WaitFor(EventKind::kStorageFailing);
  ASSERT_TRUE(failing.has_value());
  EXPECT_THAT(failing->message, HasSubstr("no space left"));
  const StatusView full = run.coordinator().GetStatus(0);
  EXPECT_EQ(full.state, RunState::kDegraded);
  EXPECT_THAT(full.state_reason, HasSubstr("no space left"));
  EXPECT_THAT(full.storage_error, HasSubstr("no space left"));
  ASSERT_EQ(full.waiting.size(), 2U);
  EXPECT_THAT(full.waiting[1].what, HasSubstr("the disk (seed)"));
  run.faults().seed = false;
  ASSERT_TRUE(run.Seed(seeder, Ones()).ok());
  EXPECT_TRUE(events.WaitFor(EventKind::kStorageRecovered).has_value());
  EXPECT_EQ(run.coordinator().GetStatus(0).storage_error, "");
}

TEST(CoordinatorSeed, APullWaitsForIt) {
  TestRun run;
  const MemberRef seeder = run.Join("a");
  const MemberRef other = run.Join("b");
  PullCall call;
  call.wait = Seconds(60);
  Version got(99);
  run.coordinator().Pull(other, call,
                         [&](absl::StatusOr<PullResult> result) { got = result->snapshot->version; });
  EXPECT_EQ(got, Version(99));
  ASSERT_TRUE(run.Seed(seeder, Ones()).ok());
  EXPECT_EQ(got, Version(0));
}

TEST(CoordinatorSeed, APullCanBeCancelledAndRunsOut) {
  TestRun run;
  const MemberRef caller = run.Join("a");
  PullCall call;
  call.wait = Seconds(30);
  absl::Status answer;
  const uint64_t id = run.coordinator().Pull(
      caller, call, [&](const absl::StatusOr<PullResult>& result) { answer = result.status(); });
  run.coordinator().CancelPull(id);
  EXPECT_TRUE(absl::IsCancelled(answer));
  run.coordinator().CancelPull(id);
  const auto none = run.Pull(caller, std::nullopt, FragmentId(0), Duration(0));
  EXPECT_EQ(none->outcome, PullOutcome::kNotYet);
  EXPECT_NE(none->waiting_for.find("'a' to seed"), std::string::npos) << none->waiting_for;
}

TEST(CoordinatorSeed, AWorkerThatJoinedBeforeARestartSeedsTheRun) {
  TestRun run;
  const MemberRef first = run.Join("a");
  const MemberRef second = run.Join("b");
  ASSERT_TRUE(run.Restart().ok());
  // The coordinator has forgotten which models they have, so both join again.
  EXPECT_EQ(ReasonOf(run.Heartbeat(first).status()), RejectionReason::kNotAMember);
  EXPECT_EQ(ReasonOf(run.Pull(second).status()), RejectionReason::kNotAMember);
  const MemberRef again = run.Join("b");
  ASSERT_TRUE(run.Heartbeat(again).ok());
  EXPECT_TRUE(run.Heartbeat(again)->seed_granted);
  EXPECT_TRUE(run.Seed(again, Ones()).ok());
  EXPECT_FALSE(run.TryJoin("a")->seed_granted);
}

}  // namespace
}  // namespace atl
