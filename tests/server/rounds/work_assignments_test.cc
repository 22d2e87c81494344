#include "server/rounds/work_assignments.h"

#include <gtest/gtest.h>

#include "tests/server/test_run.h"

namespace atl {
namespace {

RoundRecord RecordOf(uint64_t version, int64_t closed_s) {
  RoundRecord record;
  record.version = Version(version);
  record.closed_unix_ns = closed_s * 1'000'000'000;
  for (const char* worker : {"a", "b"}) {
    record.contributions.push_back({.key = {.base = Version(version - 1), .worker = worker}, .steps = 20});
  }
  return record;
}

TEST(WorkAssignments, NothingIsKeptOfAForgottenWorker) {
  WorkAssignments assignments(SmallRun().run);
  assignments.LearnPace({RecordOf(1, 100), RecordOf(2, 110)});
  ASSERT_DOUBLE_EQ(assignments.steps_per_second("a"), 2);
  assignments.Left("a");
  EXPECT_DOUBLE_EQ(assignments.steps_per_second("a"), 2) << "it may come back";
  assignments.Forget("a");
  EXPECT_EQ(assignments.steps_per_second("a"), 0);
  EXPECT_DOUBLE_EQ(assignments.steps_per_second("b"), 2);
}

/// What is left of a claim of a thousand steps' tokens, of one step.
uint64_t CountedOfOneStep(const WorkAssignments& assignments) {
  const RunOptions run = SmallRun().run;
  Member member;
  member.name = "a";
  Contribution contribution{.key = {.base = Version(1), .worker = "a"}};
  contribution.steps = 1;
  contribution.tokens = 1000 * run.tokens_per_step();
  EXPECT_TRUE(assignments.Cap(member, run, contribution).ok());
  return contribution.tokens / run.tokens_per_step();
}

TEST(WorkAssignments, TheTokensOfAllRanksCount) {
  WorkAssignments assignments(SmallRun().run, /*max_ranks=*/8);
  assignments.SetRanks("a", 1);
  EXPECT_EQ(CountedOfOneStep(assignments), 1u);
  assignments.SetRanks("a", 4);
  EXPECT_EQ(CountedOfOneStep(assignments), 4u);
}

TEST(WorkAssignments, RanksAreBounded) {
  WorkAssignments assignments(SmallRun().run, /*max_ranks=*/8);
  assignments.SetRanks("a", 1000000);
  EXPECT_EQ(CountedOfOneStep(assignments), 8u);
  assignments.SetRanks("a", 0);
  EXPECT_EQ(CountedOfOneStep(assignments), 1u);
  WorkAssignments strict(SmallRun().run, /*max_ranks=*/1);
  strict.SetRanks("a", 4);
  EXPECT_EQ(CountedOfOneStep(strict), 1u);
}

TEST(WorkAssignments, UnknownRanksAreAsManyAsMayBe) {
  const WorkAssignments after_a_restart(SmallRun().run, /*max_ranks=*/8);
  EXPECT_EQ(CountedOfOneStep(after_a_restart), 8u);
}

}  // namespace
}  // namespace atl
