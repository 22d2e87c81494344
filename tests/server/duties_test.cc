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

}  // namespace
}  // namespace atoll
