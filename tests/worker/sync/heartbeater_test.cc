#include "worker/sync/heartbeater.h"

#include <condition_variable>
#include <mutex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/sync/harness.h"
#include "worker/sync/rejection.h"

namespace atoll {
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
  h.coordinator.orders.lease = Seconds(0.12);
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
  h.board.AddEvaluation({Version(3), 1.25, 10});
  h.beats->Wake();
  h.counter.AwaitSuccesses(1);
  h.beats->Stop();
  ASSERT_EQ(h.coordinator.evaluations.size(), 1u);
  EXPECT_TRUE(h.board.evaluations().empty());
}

TEST(HeartbeaterTest, AnEvaluationStaysUntilItIsDelivered) {
  BeatHarness h;
  h.board.AddEvaluation({Version(3), 1.25, 10});
  h.coordinator.Fail("Heartbeat", {.status = absl::UnavailableError("away")});
  EXPECT_FALSE(h.beats->Beat().ok());
  EXPECT_EQ(h.board.evaluations().size(), 1u);
  EXPECT_TRUE(h.beats->Beat().ok());
  EXPECT_TRUE(h.board.evaluations().empty());
}

TEST(HeartbeaterTest, AnAbsentCoordinatorIsLoggedOnceAndEndsNoMembership) {
  BeatHarness h;
  for (int i = 0; i < 5; ++i) h.coordinator.Fail("Heartbeat", {.status = absl::UnavailableError("away")});
  for (int i = 0; i < 6; ++i) static_cast<void>(h.beats->Beat());
  EXPECT_TRUE(h.board.orders().membership.ok());
  const std::string log = h.log.str();
  EXPECT_EQ(log.find("heartbeats fail"), log.rfind("heartbeats fail"));
  EXPECT_THAT(log, HasSubstr("heartbeats succeed again"));
}

TEST(HeartbeaterTest, AnAnswerEndsTheWaitForTheCoordinatorAndIsToldAtOnce) {
  BeatHarness h;
  h.board.AwaitCoordinator("the coordinator, to push version 3: connection refused");
  h.beats->Start(Seconds(3600));
  h.beats->Wake();
  h.counter.AwaitSuccesses(2);  // the second one without the period
  h.beats->Stop();
  EXPECT_EQ(h.board.progress().waiting_for, "");
  // What a coordinator that answers says of a call stays.
  h.board.Update([](ProgressReport& progress) { progress.waiting_for = "an operator"; });
  ASSERT_TRUE(h.beats->Beat().ok());
  EXPECT_EQ(h.board.progress().waiting_for, "an operator");
}

TEST(PatienceTest, OnlyACoordinatorThatIsAwayIsBackWithAHeartbeat) {
  BeatHarness h;
  ASSERT_TRUE(h.patience.Pause(absl::UnavailableError("connection refused"), "to push version 3"));
  EXPECT_THAT(h.board.progress().waiting_for, HasSubstr("connection refused"));
  ASSERT_TRUE(h.beats->Beat().ok());
  EXPECT_EQ(h.board.progress().waiting_for, "");
  ASSERT_TRUE(h.patience.Pause(
      WithRejection(absl::UnavailableError("the disk is full"), RefusalReason::kStorageFull), "to push"));
  ASSERT_TRUE(h.beats->Beat().ok());
  EXPECT_THAT(h.board.progress().waiting_for, HasSubstr("the disk is full"));
}

TEST(HeartbeaterTest, SaysNothingBeforeTheJoin) {
  Harness h;
  EXPECT_TRUE(h.heartbeater.Beat().ok());
  EXPECT_EQ(h.coordinator.Calls("Heartbeat"), 0u);
}

TEST(BoardTest, WhatWasSaidToAFormerLifeIsIgnored) {
  Board board;
  board.SetMember(kMe, false);
  MemberRef former = kMe;
  former.incarnation = Incarnation(0);
  board.Receive(former,
                {.lease = {}, .fragments = {}, .seed_granted = true, .command = WorkerCommand::kStop});
  board.HeartbeatRefused(former, absl::NotFoundError("join again"));
  EXPECT_FALSE(board.orders().stop);
  EXPECT_FALSE(board.orders().seed_granted);
  EXPECT_TRUE(board.orders().membership.ok());
}

TEST(BoardTest, ANewLifeForgetsTheRefusalButNotTheOrderToStop) {
  Board board;
  board.SetMember(kMe, false);
  board.HeartbeatRefused(kMe, absl::NotFoundError("join again"));
  board.RequestStop();
  MemberRef next = kMe;
  next.incarnation = Incarnation(2);
  board.SetMember(next, true);
  EXPECT_TRUE(board.orders().membership.ok());
  EXPECT_TRUE(board.orders().stop);
  EXPECT_TRUE(board.orders().seed_granted);
}

TEST(BoardTest, ANewEpochForgetsWhatWasSignedForTheOneBefore) {
  Board board;
  board.SetMember(kMe, false);
  board.AddConfirmation({.fragment = FragmentId(0), .version = Version(3)});
  MemberRef again = kMe;
  again.incarnation = Incarnation(2);
  board.SetMember(again, false);
  EXPECT_EQ(board.News().confirmations.size(), 1u) << "its text names no incarnation";
  again.epoch = Epoch(78);
  board.SetMember(again, false);
  EXPECT_TRUE(board.News().confirmations.empty()) << "of a run that was restored";
}

TEST(BoardTest, NewsTellWhereTheTimeWentUpToNow) {
  FakeClock clock;
  Board board;
  EXPECT_EQ(board.News().progress.training.total(), 0);
  const TimeAccount training(&clock, TimeUse::kWait);
  const TimeAccount lane(&clock, TimeUse::kPush);
  TimeAccounts lanes;
  lanes.Add(&lane);
  board.WatchTime(&training, &lanes);
  clock.Advance(Seconds(7));
  EXPECT_EQ(board.News().progress.training[TimeUse::kWait], 7);
  EXPECT_EQ(board.progress().exchanges[TimeUse::kPush], 7);
}

}  // namespace
}  // namespace atoll
