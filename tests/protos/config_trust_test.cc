// What the fields of `offenders` and `privacy` demand of each other and of the rest
// (protos/config/check_trust.h).

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Complaint(const std::string& more) { return ComplaintAbout(SampleAnd(more)); }

RunOptions Options(const std::string& more) {
  const auto config = ParseRunConfig(SampleAnd(more), "s.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *ToRunOptions(*config) : RunOptions();
}

TEST(ConfigTrustTest, NobodyIsBannedAndNothingIsNoisedByDefault) {
  const RunOptions options = Options("");
  EXPECT_EQ(options.offenders.ban_after, 0u);
  EXPECT_EQ(options.offenders.within, 10u);
  EXPECT_EQ(options.offenders.norm, 5);
  EXPECT_EQ(options.offenders.distance, 3);
  EXPECT_EQ(options.offenders.cosine, -0.2);
  EXPECT_FALSE(options.offenders.measures());
  EXPECT_FALSE(options.privacy.enabled());
  EXPECT_EQ(options.merge.clip_iterations, 5u);
  EXPECT_TRUE(options.merge.clip_by_distance);
}

TEST(ConfigTrustTest, AreRead) {
  const RunOptions options = Options(
      "merge: {method: centered_clip, clip_radius: 2}\n"
      "offenders: {ban_after: 3, within: 7, norm: 20, distance: 4, cosine: -0.5}\n"
      "privacy: {clip_norm: 1.5, noise_multiplier: 0.75, delta: 1e-6}\n");
  EXPECT_FALSE(options.merge.clip_by_distance) << "a radius was given";
  EXPECT_EQ(options.offenders.ban_after, 3u);
  EXPECT_EQ(options.offenders.within, 7u);
  EXPECT_TRUE(options.offenders.measures()) << "the rule needs it";
  EXPECT_EQ(options.privacy.clip_norm, 1.5);
  EXPECT_EQ(options.privacy.noise_multiplier, 0.75);
  EXPECT_EQ(options.privacy.delta, 1e-6);
}

TEST(ConfigTrustTest, ARuleNeedsAMergeThatOneCannotTurn) {
  EXPECT_THAT(Complaint("offenders: {ban_after: 3}\n"), HasSubstr("set merge.norm_guard: true"));
  EXPECT_THAT(Complaint("merge: {method: rda}\noffenders: {ban_after: 3}\n"),
              HasSubstr("offenders.ban_after"));
  EXPECT_EQ(Complaint("merge: {norm_guard: true}\noffenders: {ban_after: 3}\n"), "");
  EXPECT_EQ(Complaint("merge: {method: median}\noffenders: {ban_after: 3}\n"), "");
  EXPECT_EQ(Complaint("offenders: {measure: true}\n"), "");
  EXPECT_THAT(Complaint("merge: {norm_guard: true}\noffenders: {ban_after: 11}\n"),
              HasSubstr("11 is above offenders.within, which is 10"));
}

TEST(ConfigTrustTest, NoiseNeedsABound) {
  EXPECT_THAT(Complaint("privacy: {noise_multiplier: 1}\n"),
              HasSubstr("privacy.clip_norm: 0 does not bound"));
  EXPECT_EQ(Complaint("privacy: {clip_norm: 1}\n"), "");
}

TEST(ConfigTrustTest, NoiseThatNoPushSurvivesIsRejected) {
  EXPECT_THAT(Complaint("privacy: {clip_norm: 1e17, noise_multiplier: 100}\n"),
              AllOf(HasSubstr("privacy.noise_multiplier: 100 adds noise of standard deviation 1e+19"),
                    HasSubstr("above the limit of 1e+18"), HasSubstr("every push would be refused")));
  EXPECT_THAT(Complaint("privacy: {clip_norm: 1e17, noise_multiplier: 1}\n"),
              HasSubstr("above the limit of 1e+18"))
      << "the noise of all values together";
  EXPECT_THAT(Complaint("privacy: {clip_norm: 1e5, noise_multiplier: 1}\ncodec: {push: fp16}\n"),
              HasSubstr("the largest number of codec.push fp16"));
  EXPECT_EQ(Complaint("privacy: {clip_norm: 1e5, noise_multiplier: 1}\ncodec: {push: fp32}\n"), "");
  EXPECT_EQ(Complaint("privacy: {clip_norm: 1e18}\n"), "") << "without noise";
}

TEST(ConfigTrustTest, NobodyReportsALossOnItsOwnHeldOutText) {
  const std::string privacy = "privacy: {clip_norm: 1, noise_multiplier: 1}\n";
  EXPECT_EQ(Complaint(privacy), "") << "shared text is nobody's secret";
  const std::string local = Sample("  tokenizer: bytes\n", "  tokenizer: bytes\n  mode: local\n");
  const auto by_worker = ParseRunConfig(local + privacy, "s.yaml");
  EXPECT_THAT(by_worker.status().ToString(),
              HasSubstr("evaluation.by: 'worker' lets a worker report the loss"));
  EXPECT_TRUE(ParseRunConfig(local + "evaluation: {by: evaluator}\n" + privacy, "s.yaml").ok());
}

TEST(ConfigTrustTest, StrictIsAWordForWhatHolds) {
  const RunOptions strict = Options("offenders: strict\n");
  EXPECT_EQ(strict.offenders.ban_after, 3u);
  EXPECT_EQ(strict.offenders.within, 10u);
  EXPECT_EQ(strict.merge.method, MergeMethod::kCenteredClip);
  EXPECT_FALSE(strict.merge.norm_guard);
  // Written out it is the same run, so that it survives a restart and `config set`.
  const auto word = ParseRunConfig(SampleAnd("offenders: strict\n"), "s.yaml");
  const auto fields =
      ParseRunConfig(SampleAnd("merge: {method: centered_clip}\noffenders: {ban_after: 3}\n"), "s.yaml");
  ASSERT_TRUE(word.ok() && fields.ok());
  EXPECT_EQ(FormatRunConfigYaml(*word), FormatRunConfigYaml(*fields));
}

TEST(ConfigTrustTest, StrictKeepsTheMergeThatWasChosen) {
  EXPECT_EQ(Options("merge: {method: median}\noffenders: strict\n").merge.method, MergeMethod::kMedian);
  const RunOptions guarded = Options("merge: {norm_guard: true}\noffenders: strict\n");
  EXPECT_EQ(guarded.merge.method, MergeMethod::kMean);
  EXPECT_TRUE(guarded.merge.norm_guard);
  // Other settings of the section are kept.
  EXPECT_EQ(Options("merge: {clip_iterations: 7}\noffenders: strict\n").merge.clip_iterations, 7u);
  // A plain mean was asked for by name: it cannot be banned by.
  EXPECT_THAT(Complaint("merge: {method: mean}\noffenders: strict\n"),
              HasSubstr("set merge.norm_guard: true"));
}

TEST(ConfigTrustTest, StrictWithSparsePushesGuardsTheirNorms) {
  const RunOptions sparse = Options(
      "codec: {push: topk64, error_feedback: true, allow_momentum_with_topk: true}\noffenders: strict\n");
  EXPECT_EQ(sparse.merge.method, MergeMethod::kMean);
  EXPECT_TRUE(sparse.merge.norm_guard);
  EXPECT_EQ(sparse.offenders.ban_after, 3u);
}

TEST(ConfigTrustTest, AnotherWordIsRejectedAndNamesWhatThereIs) {
  EXPECT_THAT(Complaint("offenders: harsh\n"),
              AllOf(HasSubstr("'harsh' is not a preset"), HasSubstr("allowed: strict")));
}

}  // namespace
}  // namespace atl
