// evaluation.tasks: which names it takes, and in which forms.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> TasksOf(const std::string& yaml) {
  const auto config = ParseRunConfig(yaml, "s.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return {};
  const auto options = ToRunOptions(*config);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? options->evaluation_tasks : std::vector<std::string>();
}

TEST(ConfigEvaluationTest, TasksAreTextOrList) {
  EXPECT_THAT(TasksOf(SampleAnd("evaluation: {tasks: \"hellaswag, mmlu\"}\n")),
              ElementsAre("hellaswag", "mmlu"));
  EXPECT_THAT(TasksOf(SampleAnd("evaluation: {tasks: choices, tasks_every: 3}\n")), ElementsAre("choices"));
  EXPECT_THAT(TasksOf(SampleAnd("evaluation: {tasks: [mmlu, \"hellaswag\"]}\n")),
              ElementsAre("mmlu", "hellaswag"));
  EXPECT_THAT(TasksOf(SampleAnd("evaluation:\n  tasks:\n    - choices\n    - mmlu\n")),
              ElementsAre("choices", "mmlu"));
  EXPECT_THAT(TasksOf(SampleAnd("evaluation: {tasks: []}\n")), IsEmpty());
  EXPECT_THAT(TasksOf(SampleAnd("evaluation: {tasks: \"\"}\n")), IsEmpty());
  EXPECT_THAT(TasksOf(kSampleYaml), IsEmpty());
}

TEST(ConfigEvaluationTest, AListIsNoValueOfAnotherField) {
  EXPECT_THAT(ComplaintAbout(Sample("name: sample", "name: [sample]")),
              HasSubstr("run.name: has the wrong type"));
  EXPECT_EQ(ComplaintAbout(SampleAnd("evaluation: {tasks: {mmlu: 1}}\n")),
            "evaluation.tasks: has the wrong type; allowed: names as a text with commas or as a list");
  EXPECT_THAT(ComplaintAbout(SampleAnd("evaluation: {tasks: [[mmlu]]}\n")), HasSubstr("has the wrong type"));
}

TEST(ConfigEvaluationTest, UnknownNamesSayWhatWasMeant) {
  EXPECT_EQ(ComplaintAbout(SampleAnd("evaluation: {tasks: \"hellaswag, mmul\"}\n")),
            "evaluation.tasks: 'mmul' is no task; did you mean 'mmlu'? allowed: hellaswag, mmlu, choices");
  EXPECT_EQ(ComplaintAbout(SampleAnd("evaluation: {tasks: [arithmetic]}\n")),
            "evaluation.tasks: 'arithmetic' is no task; allowed: hellaswag, mmlu, choices");
}

TEST(ConfigEvaluationTest, EachNameOnceAndNoneEmpty) {
  EXPECT_EQ(ComplaintAbout(SampleAnd("evaluation: {tasks: [mmlu, choices, mmlu]}\n")),
            "evaluation.tasks: 'mmlu' is given twice");
  EXPECT_EQ(ComplaintAbout(SampleAnd("evaluation: {tasks: \"mmlu,\"}\n")),
            "evaluation.tasks: a name is missing beside a comma");
}

TEST(ConfigEvaluationTest, ModelsWithoutProbabilitiesHaveNoTasks) {
  const std::string script = ComplaintAbout(
      Sample("  gpt:\n    layers: 2\n    heads: 4\n    width: 64\n    context: 32\n    vocabulary: 256\n",
             "  torchscript: {file: model.pt, context: 32, vocabulary: 256}\n") +
      "evaluation: {tasks: mmlu}\n");
  EXPECT_THAT(script, HasSubstr("evaluation.tasks: a run with a model.torchscript has no tasks"));
  const std::string external = ComplaintAbout(
      "run: {name: sample, workers: 4, rounds: 20}\nmodel: external\n"
      "inner: {steps: 50, learning_rate: 1, batch: 1}\nevaluation: {tasks: mmlu}\n");
  EXPECT_THAT(external, HasSubstr("evaluation.tasks: a run with an external model has no tasks"));
}

}  // namespace
}  // namespace atl
