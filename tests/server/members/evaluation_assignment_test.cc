#include <gtest/gtest.h>

#include <vector>

#include "server/members/evaluation_assignment.h"
#include "server/run/seed_grant.h"

// Who seeds, and who evaluates.

namespace atl {
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

TEST(EvaluationAssignment, FirstEveryNthAndLast) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 3});
  const Names live{"b", "a"};  // in order of their partitions
  const auto evaluates = [&](const char* name, uint64_t version, bool last = false) {
    return assignment.Assign(name, WorkerRole::kTrainer, Version(version), last, live);
  };
  EXPECT_TRUE(evaluates("b", 0));
  EXPECT_FALSE(evaluates("a", 0));
  EXPECT_FALSE(evaluates("b", 1));
  EXPECT_TRUE(evaluates("b", 3));
  EXPECT_TRUE(evaluates("b", 4, /*last=*/true));
  assignment.Reported(Version(3));
  EXPECT_FALSE(evaluates("b", 3)) << "it is known already";
}

TEST(EvaluationAssignment, TasksComeWithTheFirstEveryNthAndTheLast) {
  const EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 3, .tasks_every = 2});
  std::vector<uint64_t> due;
  for (uint64_t version = 0; version < 20; ++version) {
    if (assignment.TasksDue(Version(version), /*last=*/false)) due.push_back(version);
  }
  EXPECT_EQ(due, (std::vector<uint64_t>{0, 6, 12, 18}));
  EXPECT_TRUE(assignment.TasksDue(Version(7), /*last=*/true));
  const EvaluationAssignment ends({.by = EvaluatedBy::kWorker, .every = 0, .tasks_every = 1});
  EXPECT_TRUE(ends.TasksDue(Version(0), false));
  EXPECT_FALSE(ends.TasksDue(Version(1), false));
  EXPECT_TRUE(ends.TasksDue(Version(1), true));
  // Both are 32 bits wide: their product must not overflow to a small number.
  const EvaluationAssignment rare({.by = EvaluatedBy::kWorker, .every = 1u << 16, .tasks_every = 1u << 16});
  EXPECT_FALSE(rare.TasksDue(Version(1u << 16), false));
}

TEST(EvaluationAssignment, NoTasksWithoutNames) {
  RunOptions run;
  run.evaluation_tasks_every = 1;
  EXPECT_FALSE(EvaluationAssignment(EvaluationPolicyOf(run)).TasksDue(Version(0), true));
  run.evaluation_tasks = {"mmlu"};
  EXPECT_TRUE(EvaluationAssignment(EvaluationPolicyOf(run)).TasksDue(Version(0), true));
}

TEST(EvaluationAssignment, PassesToALivingOne) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 1});
  EXPECT_TRUE(assignment.Assign("a", WorkerRole::kTrainer, Version(1), false, Names{"a", "b"}));
  EXPECT_EQ(assignment.Holder(Version(1)), "a");
  EXPECT_TRUE(assignment.Assign("b", WorkerRole::kTrainer, Version(1), false, Names{"b"}));
  EXPECT_FALSE(assignment.Assign("a", WorkerRole::kTrainer, Version(1), false, Names{"a", "b"}))
      << "b has it now";
}

TEST(EvaluationAssignment, ZeroIsFirstAndLastOnly) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 0});
  EXPECT_TRUE(assignment.Assign("a", WorkerRole::kTrainer, Version(0), false, Names{"a"}));
  EXPECT_FALSE(assignment.Assign("a", WorkerRole::kTrainer, Version(7), false, Names{"a"}));
  EXPECT_TRUE(assignment.Assign("a", WorkerRole::kTrainer, Version(8), true, Names{"a"}));
}

TEST(EvaluationAssignment, EvaluatorsRelieveTheTrainers) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kEvaluator, .every = 1});
  EXPECT_FALSE(assignment.Assign("a", WorkerRole::kTrainer, Version(0), false, Names{"a"}));
  EXPECT_TRUE(assignment.Assign("e", WorkerRole::kEvaluator, Version(0), false, Names{"a"}));
  EXPECT_FALSE(assignment.Assign("o", WorkerRole::kObserver, Version(0), false, Names{"a"}));
}

TEST(EvaluationAssignment, CountsOnceAndOnlyFromTheWorkerThatWasAsked) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 2});
  const Names live{"a", "b"};
  EXPECT_EQ(assignment.Weigh("a", Version(2)), EvaluationWorth::kUnasked) << "it has not pulled the version";
  EXPECT_TRUE(assignment.Assign("a", WorkerRole::kTrainer, Version(2), false, live));
  EXPECT_FALSE(assignment.Assign("b", WorkerRole::kTrainer, Version(2), false, live));
  EXPECT_FALSE(assignment.Assign("a", WorkerRole::kTrainer, Version(3), false, live));
  EXPECT_EQ(assignment.Weigh("a", Version(2)), EvaluationWorth::kTaken);
  EXPECT_EQ(assignment.Weigh("b", Version(2)), EvaluationWorth::kUnasked);
  EXPECT_EQ(assignment.Weigh("a", Version(3)), EvaluationWorth::kUnasked) << "it is not due";
  assignment.Reported(Version(2));
  EXPECT_EQ(assignment.Weigh("a", Version(2)), EvaluationWorth::kKnown);
}

TEST(EvaluationAssignment, PassingOnKeepsTheRightToReport) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 1});
  EXPECT_TRUE(assignment.Assign("a", WorkerRole::kTrainer, Version(1), false, Names{"a", "b"}));
  EXPECT_TRUE(assignment.Assign("b", WorkerRole::kTrainer, Version(1), false, Names{"b"}));
  EXPECT_EQ(assignment.Weigh("a", Version(1)), EvaluationWorth::kTaken);
  EXPECT_EQ(assignment.Weigh("b", Version(1)), EvaluationWorth::kTaken);
  assignment.Forget("a");
  EXPECT_EQ(assignment.Weigh("a", Version(1)), EvaluationWorth::kUnasked);
  // One that pulls and never reports does not fill the memory.
  for (uint64_t version = 2; version < 2 + EvaluationAssignment::kKept; ++version) {
    EXPECT_TRUE(assignment.Assign("b", WorkerRole::kTrainer, Version(version), false, Names{"b"}));
  }
  EXPECT_EQ(assignment.Weigh("b", Version(1)), EvaluationWorth::kUnasked);
  EXPECT_EQ(assignment.Weigh("b", Version(2)), EvaluationWorth::kTaken);
}

TEST(EvaluationAssignment, AfterARestartTheNewestDueVersionsMayBeReported) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 10});
  assignment.Reported(Version(500));
  assignment.Inherit(Version(503), /*last=*/true, {"a"});
  EXPECT_EQ(assignment.Weigh("a", Version(503)), EvaluationWorth::kTaken) << "the last one is due";
  EXPECT_EQ(assignment.Weigh("a", Version(502)), EvaluationWorth::kUnasked) << "not due";
  EXPECT_EQ(assignment.Weigh("a", Version(500)), EvaluationWorth::kKnown);
  EXPECT_EQ(assignment.Weigh("a", Version(490)), EvaluationWorth::kTaken);
  EXPECT_EQ(assignment.Weigh("b", Version(490)), EvaluationWorth::kUnasked) << "it was no member before";
  EXPECT_EQ(assignment.Weigh("a", Version(10)), EvaluationWorth::kUnasked) << "too long ago";
  EXPECT_EQ(assignment.Weigh("a", Version(510)), EvaluationWorth::kUnasked) << "it is not published";
}

TEST(EvaluationAssignment, FewIgnoredReportsAreWorthAnEvent) {
  EvaluationAssignment assignment({.by = EvaluatedBy::kWorker, .every = 1});
  const MonoTime start = MonoTime(Seconds(1000));
  int events = 0;
  for (int i = 0; i < 1000; ++i) events += assignment.NoteIgnored(start) ? 1 : 0;
  EXPECT_EQ(events, static_cast<int>(EvaluationAssignment::kEventBurst));
  EXPECT_TRUE(assignment.NoteIgnored(start + EvaluationAssignment::kEventInterval));
  EXPECT_FALSE(assignment.NoteIgnored(start + EvaluationAssignment::kEventInterval));
  EXPECT_EQ(assignment.ignored(), 1002);
}

}  // namespace
}  // namespace atl
