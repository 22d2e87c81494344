#include "core/membership.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

MonoTime At(double seconds) { return MonoTime(Seconds(seconds)); }

class MembershipTest : public testing::Test {
 protected:
  JoinOutcome Join(const std::string& name, double at, const std::string& secret = "s",
                   WorkerRole role = WorkerRole::kTrainer) {
    const absl::StatusOr<JoinOutcome> outcome = members_.Join(name, name + secret, role, At(at));
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? *outcome : JoinOutcome{};
  }
  absl::Status Rejection(const std::string& name, double at, const std::string& secret = "s") {
    return members_.Join(name, name + secret, WorkerRole::kTrainer, At(at)).status();
  }

  Membership members_{{.lease = Seconds(15), .max_workers = 4, .partitions = 3}};
};

TEST(WorkerNames, AreDnsLike) {
  for (const char* good : {"a", "0", "worker-0", "w.3", "a-.", "0123456789"})
    EXPECT_TRUE(ValidateWorkerName(good).ok()) << good;
  EXPECT_TRUE(ValidateWorkerName(std::string(63, 'a')).ok());
  for (const char* bad : {"", "-a", ".a", "A", "a b", "a/b", "a_b", "a\n", "\xc3\xa4"}) {
    EXPECT_EQ(ValidateWorkerName(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(ValidateWorkerName(std::string(64, 'a')).ok());
  EXPECT_FALSE(ValidateWorkerName(std::string_view("a\0b", 3)).ok());
}

TEST_F(MembershipTest, GivesIncarnationsAndPartitions) {
  EXPECT_EQ(Join("b", 0).incarnation, Incarnation(1));
  const JoinOutcome second = Join("a", 0);
  EXPECT_EQ(second.incarnation, Incarnation(2));
  EXPECT_EQ(second.partition, 1u);
  EXPECT_FALSE(second.returning);
  EXPECT_EQ(second.superseded, std::nullopt);
  EXPECT_EQ(Join("eval", 0, "s", WorkerRole::kEvaluator).partition, std::nullopt);
  EXPECT_THAT(members_.ActiveTrainers(), ElementsAre("a", "b"));
  EXPECT_EQ(members_.counts().live, 3u);
  EXPECT_EQ(members_.live_count(WorkerRole::kEvaluator), 1u);
}

TEST_F(MembershipTest, ForgetsDepartedMembers) {
  Join("a", 0);
  Join("b", 0);
  EXPECT_EQ(members_.Forget("a").code(), absl::StatusCode::kFailedPrecondition) << "it is live";
  EXPECT_EQ(members_.Forget("x").code(), kNotFound);
  ASSERT_TRUE(members_.Leave("a", Incarnation(1), At(5)).ok());
  EXPECT_THAT(members_.Expire(At(20)), ElementsAre("b"));
  EXPECT_EQ(members_.counts().lost, 1u);
  EXPECT_THAT(members_.DepartedBefore(At(10), 9), ElementsAre("a"));
  EXPECT_THAT(members_.DepartedBefore(At(100), 9), ElementsAre("a", "b")) << "those longest gone first";
  EXPECT_THAT(members_.DepartedBefore(At(100), 1), ElementsAre("a"));
  ASSERT_TRUE(members_.Forget("b").ok());
  EXPECT_EQ(members_.counts().lost, 0u);
  EXPECT_EQ(members_.Find("b"), nullptr);
  const JoinOutcome again = Join("b", 21);
  EXPECT_FALSE(again.returning);
  EXPECT_EQ(again.partition, 1u) << "its partition was free";
  EXPECT_EQ(again.incarnation, Incarnation(3));
  EXPECT_THAT(members_.DepartedBefore(At(100), 9), ElementsAre("a"));
}

TEST_F(MembershipTest, TheIndicesFollowEveryChange) {
  // What each list says must be what a look at all members says, whatever happened.
  Membership members({.lease = Seconds(10), .max_workers = 5, .partitions = 4});
  uint64_t noise = 0x9e3779b97f4a7c15;
  double now = 0;
  for (int i = 0; i < 3000; ++i) {
    noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
    const std::string name(1, static_cast<char>('a' + noise % 8));
    const Member* known = members.Find(name);
    const Incarnation life = known == nullptr ? Incarnation(0) : known->incarnation;
    now += 0.7;
    switch ((noise >> 8) % 7) {
      case 0:
      case 1: {
        const auto role = (noise >> 16) % 5 == 0 ? WorkerRole::kEvaluator : WorkerRole::kTrainer;
        (void)members.Join(name, "s" + std::to_string((noise >> 24) % 2), role, At(now));
        break;
      }
      case 2:
        (void)members.Renew(name, life, At(now));
        break;
      case 3:
        (void)members.Leave(name, life, At(now));
        break;
      case 4:
        members.SetDraining(name, (noise >> 16) % 3 != 0);
        break;
      case 5:
        (void)members.Evict(name, At(now));
        break;
      default:
        (void)members.Forget(name);
    }
    (void)members.Expire(At(now));
    std::vector<const Member*> live;
    size_t lost = 0;
    for (const Member* member : members.All()) {
      lost += member->state == MemberState::kLost ? 1 : 0;
      if (!member->live()) continue;
      live.push_back(member);
    }
    ASSERT_EQ(members.Live(), live) << i;
    ASSERT_EQ(members.counts().live, live.size());
    ASSERT_EQ(members.counts().lost, lost);
    ASSERT_EQ(members.DepartedBefore(At(1e6), 100).size(), members.counts().names - live.size());
  }
}

TEST_F(MembershipTest, ReturningWorkerKeepsItsPlaceAndSupersedesItself) {
  Join("a", 0);
  Join("b", 0);
  const JoinOutcome again = Join("b", 3);
  EXPECT_TRUE(again.returning);
  EXPECT_EQ(again.superseded, Incarnation(2));
  EXPECT_EQ(again.incarnation, Incarnation(3));
  EXPECT_EQ(again.partition, 1u);
  const absl::Status old = members_.CheckCurrent("b", Incarnation(2));
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(old.message()), HasSubstr("superseded by incarnation 3"));
  EXPECT_TRUE(members_.CheckCurrent("b", Incarnation(3)).ok());
}

TEST_F(MembershipTest, StrangerIsRejectedWhileTheLeaseRuns) {
  Join("a", 0);
  const absl::Status rejected = Rejection("a", 14, "other");
  EXPECT_EQ(rejected.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("choose another name"));
  EXPECT_TRUE(members_.CheckCurrent("a", Incarnation(1)).ok());
  // After it the name is free, with its part of the data.
  const JoinOutcome taken = Join("a", 15, "other");
  EXPECT_FALSE(taken.returning);
  EXPECT_EQ(taken.partition, 0u);
  EXPECT_EQ(members_.CheckCurrent("a", Incarnation(1)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Rejection("a", 16).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(MembershipTest, RejectsWhatItCannotAdmit) {
  EXPECT_EQ(Rejection("Not Valid", 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(members_.Join("a", "", WorkerRole::kTrainer, At(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const char* name : {"a", "b", "c"}) Join(name, 0);
  const absl::Status no_data = Rejection("d", 0);
  EXPECT_EQ(no_data.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(no_data.message()), HasSubstr("all 3 parts"));
  Join("watch", 0, "s", WorkerRole::kObserver);
  const absl::Status full = Rejection("e", 0);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("maximum of 4"));
  Join("a", 1);  // a member that returns needs no more room
  EXPECT_EQ(members_.Find("d"), nullptr) << "a refused join leaves no trace";
}

TEST(MembershipNames, AreNotRememberedWithoutEnd) {
  Membership members({.max_workers = 10, .max_names = 2});
  for (const char* name : {"a", "b"}) {
    const auto joined = members.Join(name, "secret", WorkerRole::kObserver, MonoTime());
    ASSERT_TRUE(joined.ok());
    ASSERT_TRUE(members.Leave(name, joined->incarnation, MonoTime()).ok());
  }
  const auto joins = [&](const char* name) {
    return members.Join(name, "secret", WorkerRole::kObserver, MonoTime()).status().code();
  };
  EXPECT_EQ(joins("c"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(joins("a"), absl::StatusCode::kOk) << "who has been here may come back";
}

TEST_F(MembershipTest, SilenceLosesTheLeaseAndASignOfLifeRestoresIt) {
  Join("a", 0);
  Join("b", 10);
  EXPECT_THAT(members_.Expire(At(14.9)), IsEmpty());
  EXPECT_THAT(members_.Expire(At(15)), ElementsAre("a"));
  EXPECT_THAT(members_.Expire(At(15)), IsEmpty()) << "lost once";
  EXPECT_FALSE(members_.IsLive("a"));
  EXPECT_TRUE(members_.CheckCurrent("a", Incarnation(1)).ok()) << "its place is still free";

  EXPECT_TRUE(members_.Renew("a", Incarnation(1), At(20)).ok());
  EXPECT_TRUE(members_.IsLive("a"));
  EXPECT_THAT(members_.Expire(At(30)), ElementsAre("b"));
  EXPECT_THAT(members_.Expire(At(34.9)), IsEmpty());
  EXPECT_THAT(members_.Expire(At(35)), ElementsAre("a"));
}

TEST_F(MembershipTest, DepartedWorkersPartIsGivenAwayLast) {
  for (const char* name : {"a", "b"}) Join(name, 0);
  ASSERT_TRUE(members_.Leave("a", Incarnation(1), At(1)).ok());
  const JoinOutcome unused_first = Join("c", 2);
  EXPECT_EQ(unused_first.partition, 2u);
  EXPECT_EQ(unused_first.partition_from, std::nullopt);
  members_.Expire(At(15));  // b is lost later than a left
  ASSERT_TRUE(members_.Renew("c", Incarnation(3), At(15)).ok());
  const JoinOutcome inherited = Join("d", 16);
  EXPECT_EQ(inherited.partition, 0u);
  EXPECT_EQ(inherited.partition_from, "a");
  // The one that lost its part is told to join again; it then gets the part of another departed worker.
  EXPECT_EQ(members_.CheckCurrent("a", Incarnation(1)).code(), kNotFound);
  const JoinOutcome back = Join("a", 17);
  EXPECT_TRUE(back.returning);
  EXPECT_EQ(back.partition, 1u);
  EXPECT_EQ(back.partition_from, "b");
  EXPECT_EQ(members_.Renew("b", Incarnation(2), At(18)).code(), kNotFound);
}

TEST_F(MembershipTest, LeavingAndUnknownWorkersMustJoinAgain) {
  Join("a", 0);
  EXPECT_EQ(members_.CheckCurrent("ghost", Incarnation(1)).code(), kNotFound);
  EXPECT_EQ(members_.Renew("a", Incarnation(99), At(1)).code(), kNotFound);
  EXPECT_TRUE(members_.Leave("a", Incarnation(1), At(1)).ok());
  const absl::Status left = members_.CheckCurrent("a", Incarnation(1));
  EXPECT_EQ(left.code(), kNotFound);
  EXPECT_THAT(std::string(left.message()), HasSubstr("has left the run; join again"));
  EXPECT_TRUE(Join("a", 2).returning);
}

TEST_F(MembershipTest, DrainingWorkerIsLiveButNotActive) {
  Join("a", 0);
  members_.SetDraining("a", true);
  EXPECT_TRUE(members_.IsLive("a"));
  EXPECT_THAT(members_.ActiveTrainers(), IsEmpty());
  EXPECT_THAT(members_.LiveTrainers(), ElementsAre("a"));
  ASSERT_TRUE(members_.Renew("a", Incarnation(1), At(1)).ok());
  EXPECT_EQ(members_.Find("a")->state, MemberState::kDraining);
}

TEST_F(MembershipTest, ALostWorkerThatWasToldToDrainIsDrainingWhenItIsBack) {
  Join("a", 0);
  members_.SetDraining("a", true);
  EXPECT_THAT(members_.Expire(At(100)), ElementsAre("a"));
  EXPECT_EQ(members_.Find("a")->state, MemberState::kLost);
  ASSERT_TRUE(members_.Renew("a", Incarnation(1), At(101)).ok());
  EXPECT_EQ(members_.Find("a")->state, MemberState::kDraining);
  EXPECT_THAT(members_.ActiveTrainers(), IsEmpty());
  members_.SetDraining("a", false);
  EXPECT_THAT(members_.ActiveTrainers(), ElementsAre("a"));
}

TEST_F(MembershipTest, ADrainCanBeCancelledWhileTheWorkerIsLost) {
  Join("a", 0);
  members_.SetDraining("a", true);
  (void)members_.Expire(At(100));
  members_.SetDraining("a", false);
  ASSERT_TRUE(members_.Renew("a", Incarnation(1), At(101)).ok());
  EXPECT_EQ(members_.Find("a")->state, MemberState::kActive);
  members_.SetDraining("ghost", true);
  EXPECT_EQ(members_.Find("ghost"), nullptr);
}

TEST_F(MembershipTest, RestoresWhatWasStored) {
  Join("a", 0);
  Join("b", 0);
  ASSERT_TRUE(members_.Leave("b", Incarnation(2), At(1)).ok());
  std::vector<MemberRecord> records;
  for (const Member* member : members_.All()) records.push_back(RecordOf(*member));

  Membership restored({.lease = Seconds(15), .max_workers = 4, .partitions = 3});
  restored.Restore(records, Incarnation(2), At(1000));
  EXPECT_EQ(restored.next_incarnation(), Incarnation(3)) << "above every record's";
  EXPECT_TRUE(restored.IsLive("a"));
  EXPECT_FALSE(restored.IsLive("b"));
  EXPECT_EQ(restored.Find("a")->lease_expires_at, At(1015)) << "a fresh lease";
  EXPECT_TRUE(restored.Renew("a", Incarnation(1), At(1001)).ok()) << "no new Join is needed";
  EXPECT_EQ(RecordOf(*restored.Find("a")), records[0]);
  EXPECT_EQ(restored.Join("a", "as", WorkerRole::kTrainer, At(1002))->partition, 0u);
}

TEST(Membership, LocalDataHasNoPartitions) {
  Membership members({.partitions = 0});
  EXPECT_EQ(members.Join("a", "x", WorkerRole::kTrainer, At(0))->partition, std::nullopt);
  EXPECT_THAT(members.UnattendedPartitions(At(0)), IsEmpty());
}

TEST_F(MembershipTest, APartitionIsUnattendedWhenItsOwnerHasBeenGoneForOneLease) {
  EXPECT_THAT(members_.UnattendedPartitions(At(0)), ElementsAre(0, 1, 2)) << "nobody ever had them";
  Join("a", 0);
  Join("b", 0);
  EXPECT_THAT(members_.UnattendedPartitions(At(0)), ElementsAre(2));
  ASSERT_TRUE(members_.Leave("a", Incarnation(1), At(5)).ok());
  members_.Expire(At(15));  // b is lost
  EXPECT_THAT(members_.UnattendedPartitions(At(19)), ElementsAre(2));
  EXPECT_THAT(members_.UnattendedPartitions(At(20)), ElementsAre(0, 2));
  EXPECT_LE(members_.LongGoneAt("a"), At(20));
  EXPECT_GT(members_.LongGoneAt("b"), At(20));
  EXPECT_THAT(members_.UnattendedPartitions(At(30)), ElementsAre(0, 1, 2));
  Join("b", 31);
  EXPECT_THAT(members_.UnattendedPartitions(At(31)), ElementsAre(0, 2)) << "back";
}

TEST_F(MembershipTest, LostWorkerFindsNoRoomWhenTheRunIsFull) {
  Join("a", 0);
  members_.Expire(At(15));
  for (const char* name : {"b", "c"}) Join(name, 15);
  for (const char* name : {"x", "y"}) Join(name, 15, "s", WorkerRole::kObserver);
  EXPECT_EQ(members_.Renew("a", Incarnation(1), At(16)).code(), absl::StatusCode::kResourceExhausted);
}

TEST(Names, AreKnown) {
  EXPECT_EQ(WorkerRoleName(WorkerRole::kEvaluator), "evaluator");
  EXPECT_EQ(MemberStateName(MemberState::kDraining), "draining");
}

}  // namespace
}  // namespace atl
