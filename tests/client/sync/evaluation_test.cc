// What a worker says of the versions that it evaluates.
#include "client/sync/evaluation.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"
#include "tests/client/sync/streaming_harness.h"

namespace atl {
namespace {

TEST(EvaluationTest, OnlyALanguageModelHasAPerplexity) {
  for (const bool external : {false, true}) {
    Harness h;
    h.coordinator.SeedWith(1.0F);
    h.coordinator.evaluate_all = true;
    if (external) h.coordinator.run.model = ModelOptions(ExternalOptions());
    ASSERT_TRUE(h.Start().Run().ok());
    const std::string log = h.log.str();
    ASSERT_NE(log.find("evaluated the published parameters"), std::string::npos) << log;
    EXPECT_EQ(log.find("perplexity") == std::string::npos, external) << log;
  }
}

TEST(EvaluationTest, ADrainBesideItLosesNoOverlappedSteps) {
  StreamingHarness h;
  h.coordinator.evaluate_all = true;
  h.fake->on_evaluate = [&] {
    if (h.fake->steps == 0) return;
    EXPECT_TRUE(h.worker_status.RequestDrain());
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDrained);
  std::map<FragmentId, uint64_t> pushed;
  for (const PushHeader& header : h.coordinator.headers()) pushed[header.key.fragment] += header.steps;
  for (const auto& [fragment, steps] : pushed) EXPECT_EQ(steps, h.fake->steps) << fragment.value();
  EXPECT_EQ(pushed.size(), 2u);
}

class EvaluationTasksTest : public testing::Test {
 protected:
  EvaluationTasksTest() {
    h_.coordinator.SeedWith(1.0F);
    h_.coordinator.run.evaluation_tasks = {"hellaswag", "mmlu"};
    h_.coordinator.evaluate_all = h_.coordinator.run_tasks = true;
  }
  std::string log() const { return h_.log.str(); }

  Harness h_;
  const std::vector<TaskScore> scores_ = {{.task = "mmlu", .metric = "acc", .value = 0.25, .questions = 4}};
};

TEST_F(EvaluationTasksTest, ScoresAreReportedWithTheLoss) {
  h_.replica.on_tasks = [&](const TaskCall& call) {
    EXPECT_EQ(call.tasks, h_.coordinator.run.evaluation_tasks);
    EXPECT_FALSE(call.interrupted());
    call.progress("mmlu, 3 of 4 questions");
    EXPECT_EQ(h_.worker_status.progress().phase, WorkerPhase::kEvaluating);
    EXPECT_EQ(h_.worker_status.progress().waiting_for, "mmlu, 3 of 4 questions");
    return scores_;
  };
  ASSERT_TRUE(h_.Start().Run().ok());
  ASSERT_TRUE(h_.heartbeater.Beat().ok());
  ASSERT_EQ(h_.coordinator.evaluations.size(), 4u);
  for (const EvaluationReport& report : h_.coordinator.evaluations) EXPECT_EQ(report.tasks, scores_);
  EXPECT_EQ(h_.worker_status.progress().waiting_for.find("mmlu"), std::string::npos);
  EXPECT_NE(log().find("\"mmlu.acc\":0.25"), std::string::npos) << log();
}

TEST_F(EvaluationTasksTest, OnlyWhenThePlanSaysSo) {
  h_.coordinator.run_tasks = false;
  h_.replica.on_tasks = [&](const TaskCall&) {
    ADD_FAILURE() << "nobody asked";
    return scores_;
  };
  ASSERT_TRUE(h_.Start().Run().ok());
  ASSERT_TRUE(h_.heartbeater.Beat().ok());
  EXPECT_EQ(h_.coordinator.evaluations.size(), 4u);
}

TEST_F(EvaluationTasksTest, AFailureLeavesTheLoss) {
  for (const absl::Status& failure :
       {absl::CancelledError("interrupted"), absl::InternalError("no memory")}) {
    SCOPED_TRACE(failure.ToString());
    Harness h;
    h.coordinator.SeedWith(1.0F);
    h.coordinator.evaluate_all = h.coordinator.run_tasks = true;
    h.replica.on_tasks = [&](const TaskCall&) { return failure; };
    ASSERT_TRUE(h.Start().Run().ok());
    ASSERT_TRUE(h.heartbeater.Beat().ok());
    ASSERT_EQ(h.coordinator.evaluations.size(), 4u);
    EXPECT_TRUE(h.coordinator.evaluations[0].tasks.empty());
    const bool interrupted = h.log.str().find("the tasks were interrupted") != std::string::npos;
    EXPECT_EQ(interrupted, absl::IsCancelled(failure)) << h.log.str();
  }
}

TEST_F(EvaluationTasksTest, CommandsInterrupt) {
  int asked = 0;
  h_.replica.on_tasks = [&](const TaskCall& call) -> absl::StatusOr<std::vector<TaskScore>> {
    EXPECT_FALSE(call.interrupted());
    h_.worker_status.RequestStop();
    EXPECT_TRUE(call.interrupted());
    ++asked;
    return absl::CancelledError("interrupted");
  };
  EXPECT_EQ(*h_.Start().Run(), SyncEnd::kStopped);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace atl
