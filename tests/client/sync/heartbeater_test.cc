#include "client/sync/heartbeater.h"

#include <condition_variable>
#include <mutex>

#include "client/sync/rejection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

const MemberRef kMe{"run-1", Epoch(77), "w1", Incarnation(1)};

/// Tells when so many heartbeats have been answered.
class BeatCounter final : public WorkerObserver {
 public:
  void OnHeartbeat(bool ok, Duration) override {
    const std::lock_guard lock(mutex_);
    ok ? ++succeeded_ : ++failed_;
    changed_.notify_all();
  }
  void AwaitSuccesses(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return succeeded_ >= count; });
  }
  int failed() {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int succeeded_ = 0;
  int failed_ = 0;
};

struct BeatHarness : Harness {
  BeatHarness() {
    WorkerContext counted = context;
    counted.observer = &counter;
    beats_metered.emplace(&coordinator, counted);
    beats.emplace(&*beats_metered, counted);
    EXPECT_TRUE(session.Join("hash").ok());
  }
  BeatCounter counter;
  std::optional<MeteredConnection> beats_metered;
  std::optional<Heartbeater> beats;
};

TEST(HeartbeaterTest, KeepsToAShorterLease) {
  BeatHarness h;
  h.coordinator.heartbeat_reply.lease = Seconds(0.12);
  h.beats->Start(Seconds(0.4));
  const auto begin = std::chrono::steady_clock::now();
  h.counter.AwaitSuccesses(9);
  // From the first answer on every 0.1 s, a quarter of the period, instead of 3.6 s for all.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  h.beats->Stop();
}

TEST(HeartbeaterTest, BeatsOnItsOwnThread) {
  BeatHarness h;
  h.beats->Start(Seconds(0.004));
  h.counter.AwaitSuccesses(5);
  h.beats->Stop();
  EXPECT_GE(h.coordinator.Calls("Heartbeat"), 5u);
}

TEST(HeartbeaterTest, WakeDoesNotWaitForThePeriod) {
  BeatHarness h;
  h.beats->Start(Seconds(3600));
  h.worker_status.AddEvaluation({Version(3), 1.25, 10});
  h.beats->Wake();
  h.counter.AwaitSuccesses(1);
  h.beats->Stop();
  ASSERT_EQ(h.coordinator.evaluations.size(), 1u);
  EXPECT_TRUE(h.worker_status.evaluations().empty());
}

TEST(HeartbeaterTest, AnEvaluationStaysUntilItIsDelivered) {
  BeatHarness h;
  h.worker_status.AddEvaluation({Version(3), 1.25, 10});
  h.coordinator.Fail("Heartbeat", {.status = absl::UnavailableError("away")});
  EXPECT_FALSE(h.beats->Beat().ok());
  EXPECT_EQ(h.worker_status.evaluations().size(), 1u);
  EXPECT_TRUE(h.beats->Beat().ok());
  EXPECT_TRUE(h.worker_status.evaluations().empty());
}

TEST(HeartbeaterTest, AnAbsentCoordinatorIsLoggedOnceAndEndsNoMembership) {
  BeatHarness h;
  for (int i = 0; i < 5; ++i) h.coordinator.Fail("Heartbeat", {.status = absl::UnavailableError("away")});
  for (int i = 0; i < 6; ++i) static_cast<void>(h.beats->Beat());
  EXPECT_TRUE(h.worker_status.commands().membership.ok());
  const std::string log = h.log.str();
  EXPECT_EQ(log.find("heartbeats fail"), log.rfind("heartbeats fail"));
  EXPECT_THAT(log, HasSubstr("heartbeats succeed again"));
}

TEST(HeartbeaterTest, AnAnswerEndsTheWaitForTheCoordinatorAndIsToldAtOnce) {
  BeatHarness h;
  h.worker_status.AwaitCoordinator("the coordinator, to push version 3: connection refused");
  h.beats->Start(Seconds(3600));
  h.beats->Wake();
  h.counter.AwaitSuccesses(2);  // the second one without the period
  h.beats->Stop();
  EXPECT_EQ(h.worker_status.progress().waiting_for, "");
  // What a coordinator that answers says of a call stays.
  h.worker_status.Update([](ProgressReport& progress) { progress.waiting_for = "an operator"; });
  ASSERT_TRUE(h.beats->Beat().ok());
  EXPECT_EQ(h.worker_status.progress().waiting_for, "an operator");
}

TEST(RetryPolicyTest, OnlyACoordinatorThatIsAwayIsBackWithAHeartbeat) {
  BeatHarness h;
  ASSERT_TRUE(h.retry_policy.Pause(absl::UnavailableError("connection refused"), "to push version 3"));
  EXPECT_THAT(h.worker_status.progress().waiting_for, HasSubstr("connection refused"));
  ASSERT_TRUE(h.beats->Beat().ok());
  EXPECT_EQ(h.worker_status.progress().waiting_for, "");
  ASSERT_TRUE(h.retry_policy.Pause(
      WithRejection(absl::UnavailableError("the disk is full"), RejectionReason::kStorageFull), "to push"));
  ASSERT_TRUE(h.beats->Beat().ok());
  EXPECT_THAT(h.worker_status.progress().waiting_for, HasSubstr("the disk is full"));
}

TEST(HeartbeaterTest, SaysNothingBeforeTheJoin) {
  Harness h;
  EXPECT_TRUE(h.heartbeater.Beat().ok());
  EXPECT_EQ(h.coordinator.Calls("Heartbeat"), 0u);
}

TEST(WorkerStatusTest, WhatWasSaidToAFormerLifeIsIgnored) {
  WorkerStatus worker_status;
  worker_status.SetMember(kMe, false);
  MemberRef former = kMe;
  former.incarnation = Incarnation(0);
  worker_status.Receive(
      former, {.lease = {}, .fragments = {}, .seed_granted = true, .command = WorkerCommand::kStop});
  worker_status.HeartbeatRejected(former, absl::NotFoundError("join again"));
  EXPECT_FALSE(worker_status.commands().stop);
  EXPECT_FALSE(worker_status.commands().seed_granted);
  EXPECT_TRUE(worker_status.commands().membership.ok());
}

TEST(WorkerStatusTest, ANewLifeForgetsTheRejectionButNotTheCommandToStop) {
  WorkerStatus worker_status;
  worker_status.SetMember(kMe, false);
  worker_status.HeartbeatRejected(kMe, absl::NotFoundError("join again"));
  worker_status.RequestStop();
  MemberRef next = kMe;
  next.incarnation = Incarnation(2);
  worker_status.SetMember(next, true);
  EXPECT_TRUE(worker_status.commands().membership.ok());
  EXPECT_TRUE(worker_status.commands().stop);
  EXPECT_TRUE(worker_status.commands().seed_granted);
}

TEST(WorkerStatusTest, ANewEpochForgetsWhatWasSignedForTheOneBefore) {
  WorkerStatus worker_status;
  worker_status.SetMember(kMe, false);
  worker_status.AddConfirmation({.fragment = FragmentId(0), .version = Version(3)});
  MemberRef again = kMe;
  again.incarnation = Incarnation(2);
  worker_status.SetMember(again, false);
  EXPECT_EQ(worker_status.Report().confirmations.size(), 1u) << "its text names no incarnation";
  again.epoch = Epoch(78);
  worker_status.SetMember(again, false);
  EXPECT_TRUE(worker_status.Report().confirmations.empty()) << "of a run that was restored";
}

TEST(WorkerStatusTest, NewsTellWhereTheTimeWentUpToNow) {
  FakeClock clock;
  WorkerStatus worker_status;
  EXPECT_EQ(worker_status.Report().progress.training.total(), 0);
  const TimeAccount training(&clock, TimeUse::kWait);
  const TimeAccount channel(&clock, TimeUse::kPush);
  TimeAccounts channels;
  channels.Add(&channel);
  worker_status.WatchTime(&training, &channels);
  clock.Advance(Seconds(7));
  EXPECT_EQ(worker_status.Report().progress.training[TimeUse::kWait], 7);
  EXPECT_EQ(worker_status.progress().exchanges[TimeUse::kPush], 7);
}

}  // namespace
}  // namespace atl
