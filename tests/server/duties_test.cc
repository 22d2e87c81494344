#include <gtest/gtest.h>

#include <vector>

#include "server/evaluation_duty.h"
#include "server/seed_grant.h"

// Who seeds, and who evaluates.

namespace atoll {
namespace {

using Names = std::vector<WorkerName>;

TEST(SeedGrant, StaysWithItsHolderAndPassesOn) {
  SeedGrant grant;
  EXPECT_FALSE(grant.Refresh(Names{}));
  EXPECT_FALSE(grant.HeldBy(""));
  EXPECT_TRUE(grant.Refresh(Names{"m"}));
  EXPECT_FALSE(grant.Refresh(Names{"a", "m"})) << "an earlier name does not take it away";
  EXPECT_TRUE(grant.HeldBy("m"));
  EXPECT_TRUE(grant.Refresh(Names{"a", "z"}));
  EXPECT_TRUE(grant.HeldBy("a"));
  EXPECT_FALSE(grant.Refresh(Names{}));
  EXPECT_EQ(grant.holder(), "");
}

TEST(EvaluationDuty, FirstEveryNthAndLast) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 3);
  const Names live{"b", "a"};  // in order of their partitions
  const auto evaluates = [&](const char* name, uint64_t version, bool last = false) {
    return duty.Assign(name, WorkerRole::kTrainer, Version(version), last, live);
  };
  EXPECT_TRUE(evaluates("b", 0));
  EXPECT_FALSE(evaluates("a", 0));
  EXPECT_FALSE(evaluates("b", 1));
  EXPECT_TRUE(evaluates("b", 3));
  EXPECT_TRUE(evaluates("b", 4, /*last=*/true));
  duty.Reported(Version(3));
  EXPECT_FALSE(evaluates("b", 3)) << "it is known already";
}

TEST(EvaluationDuty, PassesToALivingOne) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 1);
  EXPECT_TRUE(duty.Assign("a", WorkerRole::kTrainer, Version(1), false, Names{"a", "b"}));
  EXPECT_EQ(duty.Holder(Version(1)), "a");
  EXPECT_TRUE(duty.Assign("b", WorkerRole::kTrainer, Version(1), false, Names{"b"}));
  EXPECT_FALSE(duty.Assign("a", WorkerRole::kTrainer, Version(1), false, Names{"a", "b"})) << "b has it now";
}

TEST(EvaluationDuty, ZeroIsFirstAndLastOnly) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 0);
  EXPECT_TRUE(duty.Assign("a", WorkerRole::kTrainer, Version(0), false, Names{"a"}));
  EXPECT_FALSE(duty.Assign("a", WorkerRole::kTrainer, Version(7), false, Names{"a"}));
  EXPECT_TRUE(duty.Assign("a", WorkerRole::kTrainer, Version(8), true, Names{"a"}));
}

TEST(EvaluationDuty, EvaluatorsRelieveTheTrainers) {
  EvaluationDuty duty(EvaluatedBy::kEvaluator, 1);
  EXPECT_FALSE(duty.Assign("a", WorkerRole::kTrainer, Version(0), false, Names{"a"}));
  EXPECT_TRUE(duty.Assign("e", WorkerRole::kEvaluator, Version(0), false, Names{"a"}));
  EXPECT_FALSE(duty.Assign("o", WorkerRole::kObserver, Version(0), false, Names{"a"}));
}

TEST(EvaluationDuty, CountsOnceAndOnlyFromTheWorkerThatWasAsked) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 2);
  const Names live{"a", "b"};
  EXPECT_EQ(duty.Weigh("a", Version(2)), EvaluationWorth::kUnasked) << "it has not pulled the version";
  EXPECT_TRUE(duty.Assign("a", WorkerRole::kTrainer, Version(2), false, live));
  EXPECT_FALSE(duty.Assign("b", WorkerRole::kTrainer, Version(2), false, live));
  EXPECT_FALSE(duty.Assign("a", WorkerRole::kTrainer, Version(3), false, live));
  EXPECT_EQ(duty.Weigh("a", Version(2)), EvaluationWorth::kTaken);
  EXPECT_EQ(duty.Weigh("b", Version(2)), EvaluationWorth::kUnasked);
  EXPECT_EQ(duty.Weigh("a", Version(3)), EvaluationWorth::kUnasked) << "it is not due";
  duty.Reported(Version(2));
  EXPECT_EQ(duty.Weigh("a", Version(2)), EvaluationWorth::kKnown);
}

TEST(EvaluationDuty, PassingOnKeepsTheRightToReport) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 1);
  EXPECT_TRUE(duty.Assign("a", WorkerRole::kTrainer, Version(1), false, Names{"a", "b"}));
  EXPECT_TRUE(duty.Assign("b", WorkerRole::kTrainer, Version(1), false, Names{"b"}));
  EXPECT_EQ(duty.Weigh("a", Version(1)), EvaluationWorth::kTaken);
  EXPECT_EQ(duty.Weigh("b", Version(1)), EvaluationWorth::kTaken);
  duty.Forget("a");
  EXPECT_EQ(duty.Weigh("a", Version(1)), EvaluationWorth::kUnasked);
  // One that pulls and never reports does not fill the memory.
  for (uint64_t version = 2; version < 2 + EvaluationDuty::kKept; ++version) {
    EXPECT_TRUE(duty.Assign("b", WorkerRole::kTrainer, Version(version), false, Names{"b"}));
  }
  EXPECT_EQ(duty.Weigh("b", Version(1)), EvaluationWorth::kUnasked);
  EXPECT_EQ(duty.Weigh("b", Version(2)), EvaluationWorth::kTaken);
}

TEST(EvaluationDuty, AfterARestartTheNewestDueVersionsMayBeReported) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 10);
  duty.Reported(Version(500));
  duty.Inherit(Version(503), /*last=*/true, {"a"});
  EXPECT_EQ(duty.Weigh("a", Version(503)), EvaluationWorth::kTaken) << "the last one is due";
  EXPECT_EQ(duty.Weigh("a", Version(502)), EvaluationWorth::kUnasked) << "not due";
  EXPECT_EQ(duty.Weigh("a", Version(500)), EvaluationWorth::kKnown);
  EXPECT_EQ(duty.Weigh("a", Version(490)), EvaluationWorth::kTaken);
  EXPECT_EQ(duty.Weigh("b", Version(490)), EvaluationWorth::kUnasked) << "it was no member before";
  EXPECT_EQ(duty.Weigh("a", Version(10)), EvaluationWorth::kUnasked) << "too long ago";
  EXPECT_EQ(duty.Weigh("a", Version(510)), EvaluationWorth::kUnasked) << "it is not published";
}

TEST(EvaluationDuty, FewIgnoredReportsAreWorthAnEvent) {
  EvaluationDuty duty(EvaluatedBy::kWorker, 1);
  const MonoTime start = MonoTime(Seconds(1000));
  int events = 0;
  for (int i = 0; i < 1000; ++i) events += duty.NoteIgnored(start) ? 1 : 0;
  EXPECT_EQ(events, static_cast<int>(EvaluationDuty::kEventBurst));
  EXPECT_TRUE(duty.NoteIgnored(start + EvaluationDuty::kEventInterval));
  EXPECT_FALSE(duty.NoteIgnored(start + EvaluationDuty::kEventInterval));
  EXPECT_EQ(duty.ignored(), 1002);
}

}  // namespace
}  // namespace atoll
