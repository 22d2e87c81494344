#include "core/round.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using Action = RoundDecision::Action;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

MonoTime At(double seconds) { return MonoTime(Seconds(seconds)); }

const RoundOptions kOptions{
    .deadline = Seconds(100), .quorum = 1, .grace = Seconds(10), .lease = Seconds(15), .start_workers = 3};

Contribution Of(const std::string& worker, uint64_t base, uint32_t crc = 1) {
  return {.key = {.epoch = Epoch(5), .base = Version(base), .worker = worker},
          .payload_bytes = 8,
          .payload_crc32c = crc};
}

/// Members and a round of them, driven as the coordinator drives them.
class RoundTest : public testing::Test {
 protected:
  void Join(const std::string& name, double at, WorkerRole role = WorkerRole::kTrainer) {
    ASSERT_TRUE(members_.Join(name, name, role, At(at)).ok());
    if (round_ && role == WorkerRole::kTrainer) round_->Joined(name, At(at), members_);
  }
  void Open(uint64_t base, double at) {
    round_.emplace(RoundOpening{.epoch = Epoch(5),
                                .fragment = FragmentId(0),
                                .base = Version(base),
                                .opened_at = At(at),
                                .members = members_.LiveTrainers(),
                                .awaits_first_join = !members_.counts().had_live_trainer},
                   kOptions);
  }
  /// Heartbeats of everyone but these.
  void Heartbeats(double at, const std::set<std::string>& silent = {}) {
    for (const Member* member : members_.All()) {
      if (silent.contains(member->name) || member->state == MemberState::kLeft) continue;
      const bool was_lost = member->state == MemberState::kLost;
      ASSERT_TRUE(members_.Renew(member->name, member->incarnation, At(at)).ok());
      if (was_lost) round_->Revived(member->name, At(at), members_);
    }
    members_.Expire(At(at));
  }
  void Push(const std::string& worker, double at) {
    const auto arrival = round_->Arrived(Of(worker, round_->base().value()), At(at));
    ASSERT_TRUE(arrival.ok()) << arrival.status();
    ASSERT_EQ(*arrival, Round::Arrival::kAccepted);
  }
  void Pull(std::initializer_list<const char*> workers) {
    for (const char* worker : workers) round_->Pulled(worker);
  }
  std::vector<WorkerName> Expected(double now) { return round_->View(At(now), members_).expected; }
  Action Decision(double now) { return Decide(At(now), round_->View(At(now), members_), kOptions).action; }

  Membership members_{{.lease = Seconds(15), .partitions = 0}};
  std::optional<Round> round_;
};

TEST_F(RoundTest, DoesNotWaitForOneWhosePushWasRejectedForItsContent) {
  for (const char* worker : {"a", "b", "c"}) Join(worker, 0);
  Open(1, 0);
  Pull({"a", "b", "c"});
  Push("a", 1);
  Push("b", 1);
  EXPECT_THAT(Expected(2), ElementsAre("c"));
  round_->Rejected("c");
  EXPECT_THAT(Expected(2), IsEmpty());
  EXPECT_EQ(Decision(2), Action::kClose);
  Push("c", 3);
  EXPECT_EQ(round_->arrived_count(), 3) << "a better one counts all the same";
}

TEST_F(RoundTest, WaitsAgainForARejectedWorkerThatJoinsAnewWhenNobodyElseIsThere) {
  Join("a", 0);
  Open(1, 0);
  Pull({"a"});
  round_->Rejected("a");
  EXPECT_THAT(Expected(1), IsEmpty());
  Join("a", 2);
  EXPECT_THAT(Expected(2), ElementsAre("a"));
}

TEST_F(RoundTest, FirstRoundGathersItsWorkers) {
  Open(0, 0);
  EXPECT_TRUE(round_->Gathering(At(1000))) << "waits for the first worker however long that takes";
  Join("a", 1000);
  Pull({"a"});
  Push("a", 1001);
  EXPECT_EQ(Decision(1001), Action::kWait) << "the fastest does not close the round alone";
  Join("b", 1002);
  EXPECT_TRUE(round_->Gathering(At(1002)));
  Join("c", 1003);
  EXPECT_FALSE(round_->Gathering(At(1003)));
  EXPECT_THAT(Expected(1003), ElementsAre("b", "c"));
  EXPECT_EQ(round_->View(At(1003), members_).started_at, At(1003)) << "the deadline counts from here";
  Pull({"b", "c"});
  Push("c", 1004);
  EXPECT_EQ(Decision(1004), Action::kWait);
  Push("b", 1005);
  EXPECT_EQ(Decision(1005), Action::kClose);
}

TEST_F(RoundTest, GatheringEndsAfterTheDeadline) {
  Open(0, 0);
  Join("a", 50);
  Pull({"a"});
  Push("a", 51);
  Heartbeats(149);
  EXPECT_EQ(Decision(149), Action::kWait);
  EXPECT_EQ(Decide(At(149), round_->View(At(149), members_), kOptions).next_check, At(150));
  EXPECT_EQ(Decision(150), Action::kClose) << "one is the minimum, and nobody else is there";
}

TEST_F(RoundTest, WithoutWorkersFromItsStartItIsStartingForOneLease) {
  Open(7, 1000);  // the coordinator started again
  const auto decide = [this](double now) {
    return Decide(At(now), round_->View(At(now), members_), kOptions);
  };
  EXPECT_EQ(decide(1002.6).health, RunHealth::kStarting);
  EXPECT_EQ(decide(1002.6).reason,
            "no worker has joined since the coordinator started or the run was extended");
  EXPECT_EQ(decide(1002.6).next_check, At(1015)) << "the health changes then, though nothing happens";
  EXPECT_EQ(decide(1015).health, RunHealth::kDegraded);
  EXPECT_EQ(decide(1015).next_check, std::nullopt);
}

TEST_F(RoundTest, ARoundThatOpensAfterAllWorkersHaveLeftIsDegradedAtOnce) {
  Join("a", 0);
  Open(6, 0);
  Pull({"a"});
  Push("a", 1);
  ASSERT_TRUE(members_.Leave("a", members_.Find("a")->incarnation, At(2)).ok());
  Open(7, 2);  // the version of its last push
  const RoundDecision decision = Decide(At(2), round_->View(At(2), members_), kOptions);
  EXPECT_EQ(decision.health, RunHealth::kDegraded);
  EXPECT_EQ(decision.reason, "no worker is live; waiting for workers to join");
  EXPECT_EQ(decision.next_check, std::nullopt);
  // An operator extends the finished run, and starts its workers then.
  round_->AwaitFirstJoin();
  EXPECT_EQ(Decide(At(2), round_->View(At(2), members_), kOptions).health, RunHealth::kStarting);
  EXPECT_EQ(Decide(At(17), round_->View(At(17), members_), kOptions).health, RunHealth::kDegraded);
}

TEST_F(RoundTest, AllWorkersLostIsDegradedAtOnce) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(7, 0);
  ASSERT_TRUE(members_.Leave("a", members_.Find("a")->incarnation, At(1)).ok());
  ASSERT_TRUE(members_.Leave("b", members_.Find("b")->incarnation, At(1)).ok());
  EXPECT_EQ(Decide(At(2), round_->View(At(2), members_), kOptions).health, RunHealth::kDegraded);
}

TEST_F(RoundTest, SlowPullerIsWaitedForFromTheStart) {
  for (const char* name : {"a", "b", "c"}) Join(name, 0);
  Open(4, 0);
  Pull({"a"});
  Push("a", 1);
  EXPECT_THAT(Expected(1), ElementsAre("b", "c"))
      << "members at publication, though they have not pulled yet";
  EXPECT_EQ(Decision(1), Action::kWait);
  Pull({"b"});
  Heartbeats(14);
  EXPECT_EQ(round_->View(At(14), members_).expected_change_at, At(15));
  // c lives but never pulls: after one lease it is not waited for, until it does pull.
  EXPECT_THAT(Expected(15), ElementsAre("b"));
  Pull({"c"});
  EXPECT_THAT(Expected(15), ElementsAre("b", "c"));
}

TEST_F(RoundTest, OneContributionIsNamedInTheSingular) {
  Join("a", 0);
  Open(4, 0);
  Pull({"a"});
  EXPECT_EQ(Decide(At(1), round_->View(At(1), members_), kOptions).reason,
            "0 of 1 contribution; waiting for a");
}

TEST_F(RoundTest, JoinerNeverDelaysOthersButCountsWhenItIsInTime) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  Join("late", 3);
  Pull({"late"});
  EXPECT_THAT(Expected(4), ElementsAre("a", "b"));
  const auto reason = [&](double now) {
    return Decide(At(now), round_->View(At(now), members_), kOptions).reason;
  };
  EXPECT_EQ(reason(4), "0 of 2 contributions; waiting for a, b; late counts from the next round");
  Push("a", 5);
  EXPECT_EQ(reason(5),
            "1 of 2 contributions, enough to close at the deadline; waiting for b; late counts from the next "
            "round");
  Push("late", 6);
  EXPECT_EQ(reason(6), "2 of 3 contributions, enough to close at the deadline; waiting for b")
      << "in time, so that it counts";
  Push("b", 7);
  EXPECT_EQ(Decision(7), Action::kClose);
  EXPECT_EQ(round_->Contributions().size(), 3u);
  Open(5, 8);
  EXPECT_THAT(Expected(8), ElementsAre("a", "b", "late")) << "a candidate of the next round";
}

TEST_F(RoundTest, RestartedWorkerDoesNotDelayTheRoundItLeft) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  Join("b", 5);  // a new incarnation, with nothing pulled
  Pull({"b"});
  EXPECT_THAT(Expected(6), ElementsAre("a"));
  Push("a", 7);
  EXPECT_EQ(Decision(7), Action::kClose);
}

TEST_F(RoundTest, LoneWorkerThatRestartsIsWaitedFor) {
  Join("a", 0);
  Open(4, 0);
  Pull({"a"});
  Join("a", 5);
  EXPECT_TRUE(round_->Gathering(At(6))) << "others may be restarting with it";
  EXPECT_THAT(Expected(6), ElementsAre("a"));
  Pull({"a"});
  Push("a", 21);
  EXPECT_EQ(Decision(21), Action::kClose);
}

TEST_F(RoundTest, AllRestartTogether) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  Join("a", 5);
  Join("b", 6);
  Pull({"a", "b"});
  EXPECT_THAT(Expected(7), ElementsAre("a", "b"));
  Push("b", 21);
  EXPECT_EQ(Decision(21), Action::kWait);
  Push("a", 22);
  EXPECT_EQ(Decision(22), Action::kClose);
}

TEST_F(RoundTest, ResumedRunGathersForOneLease) {
  Open(9, 0);  // a coordinator that starts again the next day, everybody long gone
  EXPECT_EQ(Decision(5), Action::kWait);
  Join("x", 300);
  Pull({"x"});
  EXPECT_TRUE(round_->Gathering(At(301)));
  EXPECT_FALSE(round_->Gathering(At(315)));
  Join("y", 310);
  Pull({"y"});
  Heartbeats(316);
  EXPECT_THAT(Expected(316), ElementsAre("x", "y"));
  EXPECT_EQ(round_->View(At(316), members_).started_at, At(315));
}

TEST_F(RoundTest, LostWorkerIsNotWaitedForAndIsAgainWhenItIsBack) {
  for (const char* name : {"a", "b", "c"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b", "c"});
  Push("a", 5);
  Push("b", 6);
  Heartbeats(15, {"c"});
  EXPECT_EQ(Decision(15), Action::kClose);
  Heartbeats(16);
  EXPECT_THAT(Expected(16), ElementsAre("c")) << "frozen and thawed before anyone decided";
  EXPECT_EQ(Decision(16), Action::kWait);
}

TEST_F(RoundTest, AfterAnOutageOfAllTheFirstToReturnDoesNotCloseAlone) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  Heartbeats(500, {"a", "b"});
  EXPECT_EQ(Decision(500), Action::kWait);
  ASSERT_TRUE(members_.Renew("a", Incarnation(1), At(1000)).ok());
  round_->Revived("a", At(1000), members_);
  Heartbeats(1001);
  Push("a", 1002);
  EXPECT_EQ(Decision(1002), Action::kWait) << "the deadline counts anew";
  EXPECT_THAT(Expected(1002), ElementsAre("b"));
}

TEST_F(RoundTest, WhatArrivedStaysWhenItsWorkerGoes) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  Push("a", 1);
  ASSERT_TRUE(members_.Leave("a", Incarnation(1), At(2)).ok());
  ASSERT_TRUE(members_.Leave("b", Incarnation(2), At(3)).ok());
  EXPECT_EQ(Decision(3), Action::kClose);
  EXPECT_EQ(round_->Contributions().size(), 1u);
}

TEST_F(RoundTest, DrainingWorkerFinishesWhatItBegan) {
  for (const char* name : {"a", "b", "c"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  members_.SetDraining("b", true);
  members_.SetDraining("c", true);
  EXPECT_THAT(Expected(1), ElementsAre("a", "b", "c"));
}

// It hears of the order with its next heartbeat, and pulls what is published until then.
TEST_F(RoundTest, ADrainingWorkerIsExpectedInARoundThatOpensBeforeItKnows) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  members_.SetDraining("a", true);
  Open(4, 0);
  Pull({"b"});
  Push("b", 1);
  EXPECT_THAT(Expected(2), ElementsAre("a")) << "before it has begun";
  EXPECT_EQ(Decision(2), Action::kWait);
  Pull({"a"});
  Push("a", 3);
  EXPECT_EQ(Decision(3), Action::kClose);
}

TEST_F(RoundTest, ADrainingWorkerThatDoesNotBeginIsWaitedForAsLongAsAnyOther) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  members_.SetDraining("a", true);
  Open(4, 0);
  Pull({"b"});
  Push("b", 1);
  Heartbeats(14);
  EXPECT_THAT(Expected(14), ElementsAre("a"));
  EXPECT_THAT(Expected(15), IsEmpty()) << "one lease";
}

TEST_F(RoundTest, ADrainingWorkerThatLeavesIsNotExpected) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  members_.SetDraining("b", true);
  Open(4, 0);
  Pull({"a", "b"});
  Push("a", 1);
  EXPECT_EQ(Decision(1), Action::kWait);
  ASSERT_TRUE(members_.Leave("b", Incarnation(2), At(2)).ok());
  EXPECT_EQ(Decision(2), Action::kClose);
}

TEST_F(RoundTest, LateContributionsAreFoldedInAndCountTowardNothing) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  Open(4, 0);
  Pull({"a", "b"});
  ASSERT_EQ(*round_->Arrived(Of("a", 2), At(1)), Round::Arrival::kAccepted);
  ASSERT_EQ(*round_->Arrived(Of("a", 3), At(2)), Round::Arrival::kAccepted);
  EXPECT_EQ(*round_->Arrived(Of("a", 3), At(3)), Round::Arrival::kDuplicate);
  EXPECT_EQ(round_->Arrived(Of("a", 3, 2), At(3)).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(round_->Arrived(Of("a", 5), At(3)).status().code(), absl::StatusCode::kFailedPrecondition);
  const RoundView view = round_->View(At(3), members_);
  EXPECT_EQ(view.late, 2u);
  EXPECT_THAT(view.arrived, IsEmpty());
  EXPECT_THAT(view.expected, ElementsAre("a", "b")) << "its contribution on this base is still to come";
  EXPECT_THAT(Decide(At(3), view, kOptions).reason, HasSubstr("0 of 2 contributions and 2 late"));
  Push("a", 4);
  EXPECT_EQ(Decision(4), Action::kWait);
  Push("b", 5);
  EXPECT_EQ(Decision(5), Action::kClose);
  EXPECT_EQ(round_->Contributions().size(), 4u);
  EXPECT_EQ(round_->Contributions().front().key.base, Version(2)) << "in the order of summation";
  EXPECT_TRUE(round_->HasArrived("a", Version(2)));
  EXPECT_FALSE(round_->HasArrived("b", Version(2)));
}

TEST_F(RoundTest, LateOnesAloneDoNotCloseARound) {
  Join("a", 0);
  Open(4, 0);
  ASSERT_TRUE(round_->Arrived(Of("a", 3), At(1)).ok());
  ASSERT_TRUE(members_.Leave("a", Incarnation(1), At(2)).ok());
  EXPECT_EQ(Decision(50), Action::kWait);
  EXPECT_EQ(Decision(500), Action::kWait) << "nobody is there; they are kept";
}

TEST_F(RoundTest, WithoutBarriersEveryArrivalCloses) {
  RoundOptions async = kOptions;
  async.mode = RoundMode::kAsync;
  for (const char* name : {"a", "b", "c"}) Join(name, 0);
  round_.emplace(RoundOpening{.epoch = Epoch(5),
                              .fragment = FragmentId(0),
                              .base = Version(0),
                              .opened_at = At(0),
                              .members = members_.LiveTrainers()},
                 async);
  const auto decide = [&](double now) { return Decide(At(now), round_->View(At(now), members_), async); };
  EXPECT_EQ(decide(1).action, Action::kWait);
  EXPECT_TRUE(decide(1).waits_for_expected);
  EXPECT_THAT(Expected(1), ElementsAre("a", "b", "c"));
  EXPECT_EQ(decide(1).next_check, At(100));
  EXPECT_EQ(decide(100).action, RoundDecision::Action::kHold) << "nothing comes: people should know";
  Push("b", 101);
  EXPECT_EQ(decide(101).action, Action::kClose);
  Round late(
      {.epoch = Epoch(5), .fragment = FragmentId(0), .base = Version(9), .opened_at = At(200), .members = {}},
      async);
  ASSERT_TRUE(late.Arrived(Of("a", 7), At(201)).ok());
  EXPECT_EQ(Decide(At(201), late.View(At(201), members_), async).action, Action::kClose)
      << "late ones as well";
  EXPECT_THAT(Decide(At(201), late.View(At(201), members_), async).reason, Not(HasSubstr("later than")))
      << "two versions back is what three workers make it";
  ASSERT_TRUE(late.Arrived(Of("b", 4), At(201)).ok());
  EXPECT_THAT(Decide(At(201), late.View(At(201), members_), async).reason,
              HasSubstr("2 arrived, 1 of them later than 3 workers make it"));
  async.minimum = 3;
  EXPECT_EQ(Decide(At(201), late.View(At(201), members_), async).action, Action::kWait);
}

TEST_F(RoundTest, EvaluatorsAreNeverWaitedFor) {
  Join("a", 0);
  Join("eval", 0, WorkerRole::kEvaluator);
  Open(4, 0);
  Pull({"a", "eval"});
  Push("a", 1);
  EXPECT_EQ(Decision(1), Action::kClose);
}

TEST_F(RoundTest, CountsEachWorkerOnce) {
  Join("a", 0);
  Open(4, 0);
  Pull({"a"});
  EXPECT_EQ(*round_->Check(Of("a", 4)), Round::Arrival::kAccepted);
  EXPECT_EQ(round_->arrived_count(), 0u) << "Check changes nothing";
  Push("a", 1);
  EXPECT_EQ(*round_->Arrived(Of("a", 4), At(2)), Round::Arrival::kDuplicate);
  EXPECT_EQ(round_->View(At(2), members_).arrived[0].at, At(1)) << "a repetition does not restart the grace";
  const absl::Status other = round_->Arrived(Of("a", 4, /*crc=*/2), At(3)).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(other.message()), HasSubstr("only the first one counts"));
  EXPECT_EQ(round_->arrived_count(), 1u);
  EXPECT_EQ(round_->Contributions()[0].payload_crc32c, 1u);
}

TEST_F(RoundTest, RejectsWhatIsNotOfThisRound) {
  Open(4, 0);
  Contribution old_epoch = Of("a", 4), other_fragment = Of("a", 4);
  old_epoch.key.epoch = Epoch(4);
  other_fragment.key.fragment = FragmentId(1);
  for (const Contribution& wrong : {Of("a", 5), old_epoch, other_fragment}) {
    EXPECT_EQ(round_->Arrived(wrong, At(1)).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_THAT(std::string(round_->Check(Of("a", 5)).status().message()),
              HasSubstr("base version 5, but the open round has 4"));
  EXPECT_THAT(round_->Contributions(), IsEmpty());
}

TEST_F(RoundTest, ContributionsComeInSummationOrder) {
  Open(4, 0);
  for (const char* name : {"w-10", "z", "w-2", "a"}) Push(name, 1);
  std::vector<WorkerName> order;
  for (const Contribution& c : round_->Contributions()) order.push_back(c.key.worker);
  EXPECT_THAT(order, ElementsAre("a", "w-10", "w-2", "z"));
}

TEST_F(RoundTest, ATrainerThatComesBackAsEvaluatorIsNotWaitedFor) {
  for (const char* worker : {"a", "b", "c"}) Join(worker, 0);
  Open(1, 0);
  Pull({"a", "b", "c"});
  Push("a", 1);
  Push("b", 1);
  EXPECT_THAT(Expected(2), ElementsAre("c"));
  Join("c", 3, WorkerRole::kEvaluator);
  EXPECT_THAT(Expected(4), IsEmpty());
  EXPECT_EQ(Decision(4), Action::kClose);
}

TEST_F(RoundTest, ARoundWhoseTrainersBecameEvaluatorsGathersOthers) {
  Join("a", 0);
  Open(1, 0);
  Pull({"a"});
  Join("a", 1, WorkerRole::kEvaluator);
  Join("b", 2);
  EXPECT_TRUE(round_->Gathering(At(3)));
  EXPECT_THAT(Expected(3), ElementsAre("b"));
}

TEST_F(RoundTest, AnEvaluatorDoesNotEndTheGathering) {
  for (const char* worker : {"a", "b"}) Join(worker, 0);
  Open(0, 0);
  Join("b", 1, WorkerRole::kEvaluator);
  Join("c", 2);
  EXPECT_EQ(round_->View(At(3), members_).gathered, 2);
  EXPECT_TRUE(round_->Gathering(At(3))) << "two of three";
}

}  // namespace
}  // namespace atl
