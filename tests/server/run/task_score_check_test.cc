#include "server/run/task_score_check.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kTasks = {"hellaswag", "mmlu"};

TaskScore Good() {
  return {
      .task = "hellaswag", .metric = "acc_norm", .value = 0.25, .standard_error = 0.01, .questions = 1000};
}

std::string WhyNot(const TaskScore& score) { return std::string(CheckTaskScore(score, kTasks).message()); }

TEST(TaskScoreCheck, AShareOfQuestionsIsTaken) {
  EXPECT_TRUE(CheckTaskScore(Good(), kTasks).ok());
  TaskScore score = Good();
  for (const double bound : {0.0, 1.0}) {
    score.value = bound;
    score.standard_error = 0;  // not known
    EXPECT_TRUE(CheckTaskScore(score, kTasks).ok());
  }
}

TEST(TaskScoreCheck, WhatIsNoScoreIsNamed) {
  TaskScore score = Good();
  score.task = "choices";
  EXPECT_EQ(WhyNot(score), "its task is none of evaluation.tasks: hellaswag, mmlu");
  EXPECT_EQ(CheckTaskScore(Good(), {}).message(), "evaluation.tasks names no task");
  for (const double value : {-0.01, 1.01, std::numeric_limits<double>::infinity(), std::nan("")}) {
    score = Good();
    score.value = value;
    EXPECT_THAT(WhyNot(score), HasSubstr("a share of questions is 0 to 1")) << value;
    score = Good();
    score.standard_error = value;
    EXPECT_THAT(WhyNot(score), HasSubstr("standard error")) << value;
  }
  for (const std::string& name :
       {std::string(), std::string("acc\n"), std::string("Acc"), std::string(33, 'a')}) {
    score = Good();
    score.metric = name;
    EXPECT_THAT(WhyNot(score), HasSubstr("a-z, 0-9 and _")) << name;
  }
  for (const uint64_t questions : {uint64_t{0}, kMaxTaskQuestions + 1}) {
    score = Good();
    score.questions = questions;
    EXPECT_THAT(WhyNot(score), HasSubstr("questions")) << questions;
  }
}

TEST(TaskScoreCheck, TheTextHasAnErrorIfItIsKnown) {
  EXPECT_EQ(TaskScoreText(Good()), "hellaswag acc_norm 0.2500 ±0.0100");
  TaskScore score = Good();
  score.standard_error = 0;
  EXPECT_EQ(TaskScoreText(score), "hellaswag acc_norm 0.2500");
}

}  // namespace
}  // namespace atl
