#include "protos/config/run_config.h"

#include <algorithm>

#include "common/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "protos/config/explain.h"
#include "tests/paths.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kSource = ATOLL_SOURCE_DIR;

TEST(RunConfigTest, DefaultsStandInTheResult) {
  const auto config = ParseRunConfig(kSampleYaml, "s.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->run().name(), "sample");
  EXPECT_EQ(config->run().seed(), 1337u);
  EXPECT_EQ(config->inner().learning_rate(), 1e-3);
  EXPECT_EQ(config->inner().optimizer(), v1::INNER_OPTIMIZER_ADAMW);
  EXPECT_TRUE(config->model().gpt().tied_embeddings());
  ASSERT_TRUE(config->has_outer() && config->has_round() && config->has_codec() && config->has_limits());
  EXPECT_EQ(config->outer().momentum(), 0.9);
  EXPECT_EQ(config->round().deadline_s(), 600);
  EXPECT_EQ(config->codec().push(), v1::CODEC_E3M0);
  EXPECT_TRUE(config->codec().error_feedback());
  EXPECT_EQ(config->limits().contribution_budget_mib(), 4096u);
}

TEST(RunConfigTest, GivenValuesWinOverDefaults) {
  const auto config = ParseRunConfig(
      SampleAnd("outer: {optimizer: sgd, learning_rate: 1}\ncodec:\n  error_feedback: false\nround:\n"),
      "s.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->outer().optimizer(), v1::OUTER_OPTIMIZER_SGD);
  EXPECT_EQ(config->outer().learning_rate(), 1);
  EXPECT_EQ(config->outer().momentum(), 0.9);
  EXPECT_FALSE(config->codec().error_feedback());
  EXPECT_EQ(config->round().lease_s(), 15);
}

TEST(RunConfigTest, OptionsHoldEveryField) {
  const auto config = ParseRunConfig(
      SampleAnd(
          "outer: {optimizer: adam, learning_rate: 0.3, momentum: 0.4, beta1: 0.5, beta2: 0.6, epsilon: "
          "0.7, delay: 8, spread: 0.125}\n"
          "merge: {weights: tokens_squared_per_step, method: centered_clip, trim: 0.125, clip_radius: 2.5, "
          "clip_iterations: 7, norm_guard: true, sparse_average: present}\n"
          "round: {deadline_s: 1.5, quorum: 0.5, minimum: 2, grace_s: 0.25, lease_s: 3, start_workers: 3, "
          "staleness_limit: 5, grace: fixed}\n"
          "codec: {push: int8, pull: bf16, error_feedback: false, error_feedback_beta: 0.5, "
          "error_feedback_form: moving_average, error_feedback_reset: 9, zstd: true}\n"
          "evaluation: {every: 3, batches: 7, by: evaluator}\n"
          "checkpoint: {keep_versions: 5, shards: 2, every: 6, keep: 4, keep_every: 9}\n"
          "limits: {max_workers: 9, contribution_budget_mib: 8}\n"),
      "s.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto options = ToRunOptions(*config);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->name, "sample");
  EXPECT_EQ(options->model.gpt().width, 64u);
  EXPECT_EQ(options->model.vocabulary(), 256u);
  EXPECT_EQ(options->data.tokenizer, "bytes");
  EXPECT_EQ(options->data.partitions, 4u);
  EXPECT_EQ(options->inner.steps, 50u);
  EXPECT_EQ(options->inner.batch, 12u);
  EXPECT_EQ(options->outer, (OuterOptions{.optimizer = OuterOptimizerKind::kAdam,
                                          .learning_rate = 0.3,
                                          .momentum = 0.4,
                                          .beta1 = 0.5,
                                          .beta2 = 0.6,
                                          .epsilon = 0.7,
                                          .delay = 8,
                                          .spread = 0.125}));
  EXPECT_EQ(options->merge, (MergeOptions{.weights = MergeWeighting::kTokensSquaredPerStep,
                                          .method = MergeMethod::kCenteredClip,
                                          .trim = 0.125,
                                          .clip_radius = 2.5,
                                          .clip_iterations = 7,
                                          .norm_guard = true,
                                          .sparse_average = SparseAverage::kPresent}));
  EXPECT_EQ(options->round.deadline, Seconds(1.5));
  EXPECT_EQ(options->round.quorum, 0.5);
  EXPECT_EQ(options->round.minimum, 2u);
  EXPECT_EQ(options->round.grace, Seconds(0.25));
  EXPECT_EQ(options->round.lease, Seconds(3));
  EXPECT_EQ(options->round.start_workers, 3u);
  EXPECT_EQ(options->round.mode, RoundMode::kBarrier);
  EXPECT_EQ(options->round.staleness_limit, 5u);
  EXPECT_EQ(options->round.grace_mode, GraceMode::kFixed);
  EXPECT_EQ(options->push_codec, CodecKind::kInt8);
  EXPECT_EQ(options->pull_codec, CodecKind::kBf16);
  EXPECT_FALSE(options->error_feedback);
  EXPECT_EQ(options->error_feedback_beta, 0.5);
  EXPECT_EQ(options->error_feedback_form, ErrorFeedbackForm::kMovingAverage);
  EXPECT_EQ(options->error_feedback_reset, 9u);
  EXPECT_TRUE(options->zstd);
  EXPECT_EQ(options->evaluation_every, 3u);
  EXPECT_EQ(options->evaluation_batches, 7u);
  EXPECT_EQ(options->evaluated_by, EvaluatedBy::kEvaluator);
  EXPECT_EQ(options->keep_versions, 5u);
  EXPECT_EQ(options->shards, 2u);
  EXPECT_EQ(options->checkpoint_every, 6u);
  EXPECT_EQ(options->checkpoint_keep, 4u);
  EXPECT_EQ(options->checkpoint_keep_every, 9u);
  EXPECT_EQ(options->inner.pace, InnerPace::kFixed);
  EXPECT_EQ(options->max_workers, 9u);
  EXPECT_EQ(options->contribution_budget_bytes, uint64_t{8} << 20);
  EXPECT_EQ(options->total_tokens(), uint64_t{20} * 50 * 12 * 32 * 4);
}

TEST(RunConfigTest, ZeroMeansAsManyAsWorkers) {
  const auto options = ToRunOptions(*ParseRunConfig(kSampleYaml, "s.yaml"));
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->data.partitions, 4u);
  EXPECT_EQ(options->round.start_workers, 4u);
  EXPECT_EQ(options->outer.delay, 4u);
}

TEST(RunConfigTest, FormattedYamlReadsBackTheSame) {
  for (const std::string& yaml :
       {std::string(kSampleYaml), SampleAnd("codec: {push: bf16}\nround: {grace_s: 0.1}\n"),
        Sample("name: sample", "name: 'null'"), Sample("1e-3", "0.00012345678901234567")}) {
    const auto config = ParseRunConfig(yaml, "s.yaml");
    ASSERT_TRUE(config.ok()) << config.status();
    const auto back = ParseRunConfig(FormatRunConfigYaml(*config), "formatted");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*config, *back)) << FormatRunConfigYaml(*config);
    EXPECT_EQ(RunConfigHash(*config), RunConfigHash(*back));
  }
}

TEST(RunConfigTest, HashSeesEveryChange) {
  const auto a = ParseRunConfig(kSampleYaml, "a");
  const auto b = ParseRunConfig(Sample("rounds: 20", "rounds: 21"), "b");
  EXPECT_EQ(RunConfigHash(*a).size(), 64u);
  EXPECT_NE(RunConfigHash(*a), RunConfigHash(*b));
}

TEST(RunConfigTest, TheFilesThatComeWithItAreRight) {
  for (const char* name : {"quickstart", "small"}) {
    const auto config = LoadRunConfig(kSource + "/configs/" + name + ".yaml");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->run().name(), name);
    EXPECT_TRUE(ToRunOptions(*config).ok());
  }
  EXPECT_EQ(LoadRunConfig("/nowhere.yaml").status().code(), absl::StatusCode::kNotFound);
}

TEST(RunConfigTest, TheDocumentHoldsTheTablesAndARightExample) {
  const auto document = ReadFile(kSource + "/docs/reference/configuration.md");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_TRUE(document->ends_with(ExplainRunConfigMarkdown()))
      << "docs/reference/configuration.md must end with:\n\n"
      << ExplainRunConfigMarkdown();
  const std::string fence = "```yaml\n";
  const size_t begin = document->find(fence) + fence.size();
  const auto example =
      ParseRunConfig(document->substr(begin, document->find("```", begin) - begin), "example");
  EXPECT_TRUE(example.ok()) << example.status();
}

TEST(RunConfigTest, ExplainNamesEverySection) {
  const std::string text = ExplainRunConfig();
  for (const char* section : {"run: ", "model.gpt: ", "model.llama: ", "data: ", "inner: ", "outer: ",
                              "merge: ", "round: ", "codec: ", "evaluation: ", "checkpoint: ", "limits: "}) {
    EXPECT_THAT(text, HasSubstr(section));
  }
  EXPECT_THAT(text, HasSubstr("quorum                   1         a number above 0, at most 1\n"));
}

TEST(RunConfigTest, ExplainsOneSectionOrField) {
  const std::string all = ExplainRunConfig(), round = ExplainRunConfig("round");
  EXPECT_THAT(round, AllOf(StartsWith("round: "), HasSubstr("\n  quorum "), Not(HasSubstr("codec: "))));
  EXPECT_THAT(all, HasSubstr(round));
  EXPECT_THAT(ExplainRunConfig("model"), HasSubstr("model.gpt: "));
  const std::string quorum = ExplainRunConfig("round.quorum");
  EXPECT_THAT(quorum, AllOf(StartsWith("round: "), HasSubstr("\n  quorum ")));
  EXPECT_EQ(std::ranges::count(quorum, '\n'), 3) << quorum;
  for (const char* absent : {"roun", "round.", "round.quoru", "quorum", "round.quorum.x"}) {
    EXPECT_EQ(ExplainRunConfig(absent), "") << absent;
  }
}

}  // namespace
}  // namespace atl
