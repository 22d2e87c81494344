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

}  // namespace
}  // namespace atl
