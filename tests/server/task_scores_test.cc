// The scores of evaluation.tasks: which evaluations have them, which scores count, and what becomes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "server/admin/admin_control.h"
#include "server/events/event_json.h"
#include "tests/server/test_run.h"

namespace atl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const AdminCaller kAnn{.user = "ann", .peer = "test"};

float Start(size_t i) { return 0.5F + 0.01F * static_cast<float>(i % 13); }

TaskScore Score(const std::string& metric, double value) {
  return {.task = "hellaswag", .metric = metric, .value = value, .standard_error = 0.01, .questions = 100};
}

CoordinatorOptions WithTasks() {
  CoordinatorOptions options = SmallRun();
  options.run.evaluation_tasks = {"hellaswag", "mmlu"};
  options.run.evaluation_tasks_every = 2;
  return options;
}

class TaskScoresTest : public testing::Test {
 protected:
  void Begin() { workers_ = run_.Begin({"a", "b"}, Fill(Start)); }
  /// Both push; worker a is asked to evaluate the new version.
  RoundPlan Round(uint64_t base) {
    for (const MemberRef& worker : workers_) (void)run_.Pull(worker);
    for (const MemberRef& worker : workers_) {
      EXPECT_TRUE(run_.Push(worker, base, Fill([](size_t) { return 0.01F; })).ok());
    }
    const auto pulled = run_.Pull(workers_[0], base);
    EXPECT_TRUE(pulled.ok() && pulled->plan.evaluate);
    return pulled->plan;
  }
  void Report(uint64_t version, std::vector<TaskScore> tasks) {
    HeartbeatCall call;
    call.evaluations.push_back(
        {.version = Version(version), .loss = 4.5, .tokens = 100, .tasks = std::move(tasks)});
    ASSERT_TRUE(run_.coordinator().Heartbeat(workers_[0], call).ok());
  }
  StatusView Status() { return run_.coordinator().GetStatus(100); }

  TestRun run_{WithTasks()};
  std::vector<MemberRef> workers_;
};

TEST_F(TaskScoresTest, PlansAskForThemWithEveryNthEvaluation) {
  Begin();
  EXPECT_TRUE(run_.Pull(workers_[0])->plan.run_tasks) << "the first";
  EXPECT_FALSE(run_.Pull(workers_[1])->plan.run_tasks) << "another worker evaluates";
  EXPECT_FALSE(Round(0).run_tasks);
  EXPECT_TRUE(Round(1).run_tasks);
  EXPECT_FALSE(Round(2).run_tasks);
}

TEST_F(TaskScoresTest, TheyAreShownStoredAndOutliveARestart) {
  Begin();
  ASSERT_TRUE(run_.Pull(workers_[0])->plan.run_tasks);
  const std::vector<TaskScore> scores = {Score("acc", 0.25), Score("acc_norm", 0.3125)};
  Report(0, scores);
  const auto evaluated = EventCatcher(&run_.coordinator()).WaitFor(EventKind::kEvaluated);
  EXPECT_EQ(evaluated->message,
            "version 0 has validation loss 4.5000, hellaswag acc 0.2500 ±0.0100, hellaswag acc_norm 0.3125 "
            "±0.0100");
  EXPECT_EQ(evaluated->evaluation->tasks, scores);
  EXPECT_EQ(DecodeEvent(EncodeEvent(*evaluated))->evaluation->tasks, scores);
  EXPECT_EQ(Status().evaluations.front().tasks, scores);
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(Status().evaluations.front().tasks, scores);
  EXPECT_EQ(Status().scored->tasks, scores);
}

TEST_F(TaskScoresTest, ThoseThatCannotBeAreIgnoredAndTheLossCounts) {
  Begin();
  EventCatcher events(&run_.coordinator());
  ASSERT_TRUE(run_.Pull(workers_[0])->plan.run_tasks);
  TaskScore other = Score("acc", 0.5);
  other.task = "arithmetic";
  Report(0, {Score("acc", 1.5), other, Score("acc", 0.25), Score("acc", 0.75),
             Score("acc_norm", std::numeric_limits<double>::quiet_NaN())});
  const auto ignored = events.WaitFor(EventKind::kUnknown);
  EXPECT_EQ(ignored->worker, "a");
  EXPECT_EQ(
      ignored->message,
      "4 task scores for version 0 from worker 'a' are ignored: hellaswag acc is 1.5; a share of questions "
      "is 0 to 1");
  ASSERT_EQ(Status().evaluations.size(), 1);
  EXPECT_EQ(Status().evaluations.front().loss, 4.5);
  EXPECT_THAT(Status().evaluations.front().tasks, ElementsAre(Score("acc", 0.25)));
}

TEST_F(TaskScoresTest, AFloodOfMetricsIsCut) {
  Begin();
  ASSERT_TRUE(run_.Pull(workers_[0])->plan.run_tasks);
  std::vector<TaskScore> many;
  for (int i = 0; i < 200; ++i) many.push_back(Score("m" + std::to_string(i), 0.5));
  Report(0, many);
  EXPECT_EQ(Status().evaluations.front().tasks.size(), 24);
}

TEST_F(TaskScoresTest, ARestoreAbandonsThemLikeLosses) {
  Begin();
  ASSERT_TRUE(run_.Pull(workers_[0])->plan.run_tasks);
  Report(0, {Score("acc", 0.25)});
  Round(0);
  Report(1, {});
  ASSERT_TRUE(run_.admin().CreateCheckpoint(kAnn, "one").ok());
  ASSERT_TRUE(Round(1).run_tasks);
  Report(2, {Score("acc", 0.75)});
  EXPECT_EQ(Status().scored->version, Version(2));
  ASSERT_TRUE(run_.admin().RestoreCheckpoint(kAnn, "one").ok());
  EXPECT_EQ(Status().scored->version, Version(0));
  ASSERT_EQ(Status().abandoned_evaluations.size(), 1);
  EXPECT_THAT(Status().abandoned_evaluations.front().tasks, ElementsAre(Score("acc", 0.75)));
}

TEST_F(TaskScoresTest, TheyAreExported) {
  Begin();
  ASSERT_TRUE(run_.Pull(workers_[0])->plan.run_tasks);
  Report(0, {Score("acc", 0.25)});
  std::vector<std::pair<std::string, double>> points;
  ASSERT_TRUE(run_.admin()
                  .ExportMetrics([&](const MetricPointView& point) {
                    points.emplace_back(point.name, point.value);
                    return true;
                  })
                  .ok());
  EXPECT_THAT(points, ElementsAre(std::pair("validation/loss", 4.5), std::pair("task/hellaswag/acc", 0.25)));
}

TEST_F(TaskScoresTest, TheEndWaitsForAWorkerThatScores) {
  run_.options().run.rounds = 1;
  ASSERT_TRUE(run_.Restart().ok());
  Begin();
  EventCatcher events(&run_.coordinator());
  ASSERT_TRUE(Round(0).run_tasks) << "the last";
  const auto beat = [&](WorkerPhase phase) {
    HeartbeatCall call;
    call.progress.phase = phase;
    ASSERT_TRUE(run_.coordinator().Heartbeat(workers_[0], call).ok());
  };
  for (int minute = 0; minute < 60; ++minute) {
    for (int i = 0; i < 6; ++i) {
      run_.clock().Advance(Seconds(10));
      beat(WorkerPhase::kEvaluating);
    }
  }
  EXPECT_THAT(Status().state_reason, HasSubstr("waiting for the evaluation of the last version"));
  Report(1, {Score("acc", 0.5)});
  run_.clock().Advance(Seconds(1));
  const auto finished = events.WaitFor(EventKind::kRunFinished);
  ASSERT_TRUE(finished.has_value());
  EXPECT_THAT(finished->message, testing::Not(HasSubstr("was not evaluated")));
}

}  // namespace
}  // namespace atl
