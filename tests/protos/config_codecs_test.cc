// Codecs, error feedback, merges and outer optimizers that must not be mixed (protos/config/check_codecs.h).

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/assumed_fields.h"
#include "protos/config/defaults.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Complaint(const std::string& more) { return ComplaintAbout(SampleAnd(more)); }

const std::string kSgd = "outer: {optimizer: sgd, learning_rate: 1}\n";

TEST(ConfigCodecsTest, EveryCodecCanPush) {
  for (const char* codec : {"fp32", "fp16", "bf16", "int8", "int4", "e3m0", "int8_quantile", "topk64",
                            "topk128", "topk64_bf16", "topk128_bf16"}) {
    EXPECT_EQ(Complaint(kSgd + "codec: {push: " + codec + "}\n"), "");
  }
}

TEST(ConfigCodecsTest, TopKWithMomentumNeedsAWord) {
  const std::string push = "codec: {push: topk64}\n";
  EXPECT_THAT(Complaint(push), StartsWith("codec.push: 'topk64' with outer momentum"));
  EXPECT_THAT(Complaint(push + "outer: {optimizer: adam}\n"), HasSubstr("outer momentum"));
  EXPECT_EQ(Complaint("codec: {push: topk64, allow_momentum_with_topk: true}\n"), "");
  EXPECT_EQ(Complaint(push + "outer: {momentum: 0}\n"), "");
  EXPECT_EQ(Complaint("codec: {push: e3m0}\n"), "");
}

TEST(ConfigCodecsTest, TopKIsNotMergedByCoordinate) {
  for (const char* method : {"trimmed_mean, trim: 0.3", "median", "centered_clip"}) {
    EXPECT_THAT(Complaint(kSgd + "codec: {push: topk128_bf16}\nmerge: {method: " + method + "}\n"),
                HasSubstr("(most of them) as zeros"));
  }
  EXPECT_EQ(Complaint(kSgd + "codec: {push: topk128_bf16}\nmerge: {method: rda}\n"), "");
}

TEST(ConfigCodecsTest, AveragingWhatIsPresentIsForTheMean) {
  const std::string topk = kSgd + "codec: {push: topk64}\n";
  EXPECT_EQ(Complaint(topk + "merge: {sparse_average: present}\n"), "");
  EXPECT_THAT(Complaint(topk + "merge: {method: rda, sparse_average: present}\n"),
              StartsWith("merge.sparse_average: 'present' works only with merge.method mean"));
}

TEST(ConfigCodecsTest, DeltasAreOfFloat32) {
  for (const char* codec : {"none", "int8", "int4", "e3m0"}) {
    EXPECT_EQ(Complaint(std::string("codec: {pull_delta: ") + codec + "}\n"), "");
  }
  EXPECT_THAT(Complaint("codec: {pull: bf16, pull_delta: int8}\n"),
              StartsWith("codec.pull: 'bf16' cannot be combined with codec.pull_delta"));
  EXPECT_NE(Complaint("codec: {pull_delta: topk64}\n"), "");
  const auto config = ParseRunConfig(SampleAnd("codec: {pull_delta: e3m0}\n"), "s.yaml");
  EXPECT_EQ(ToRunOptions(*config)->pull_delta, CodecKind::kE3m0);
  EXPECT_EQ(ToRunOptions(*config)->pull_codec, CodecKind::kFp32);
}

TEST(ConfigCodecsTest, BothDirectionsAreCompressedUnlessTheFileSaysOtherwise) {
  const auto options = [](const std::string& more) {
    return *ToRunOptions(*ParseRunConfig(SampleAnd(more), "s.yaml"));
  };
  EXPECT_EQ(options("").push_codec, CodecKind::kE3m0);
  EXPECT_EQ(options("").pull_delta, CodecKind::kE3m0);
  const RunOptions plain = options("codec: {push: fp32, pull_delta: none}\n");
  EXPECT_EQ(plain.push_codec, CodecKind::kFp32);
  EXPECT_EQ(plain.pull_delta, std::nullopt);
  // The difference is one of float32 versions: whoever asks for others gets them in full.
  const RunOptions brief = options("codec: {pull: bf16}\n");
  EXPECT_EQ(brief.pull_codec, CodecKind::kBf16);
  EXPECT_EQ(brief.pull_delta, std::nullopt);
}

// What the release did that recorded a configuration without the field.
TEST(ConfigCodecsTest, WhatIsNotRecordedWasFloat32) {
  v1::RunConfig recorded = *ParseRunConfig(kSampleYaml, "s.yaml");
  recorded.mutable_codec()->clear_push();
  recorded.mutable_codec()->clear_pull_delta();
  EXPECT_EQ(ToRunOptions(recorded)->push_codec, CodecKind::kFp32);
  EXPECT_EQ(ToRunOptions(recorded)->pull_delta, std::nullopt);
}

TEST(ConfigCodecsTest, ARunKeepsWhatItsFileLeavesToADefaultThatChanged) {
  const auto plain =
      ParseRunConfig(SampleAnd("codec: {push: int8, pull_delta: none, zstd: true}\n"), "s.yaml");
  v1::RunConfig silent = *ParseRunConfig(SampleAnd("codec: {push: bf16}\n"), "s.yaml");
  const std::vector<std::string> assumed = AssumedFields({{"codec", 18}, {"codec.push", 18}});
  EXPECT_THAT(assumed, Contains("codec.pull_delta"));
  EXPECT_THAT(assumed, Not(Contains("codec.push"))) << "the file gives it";
  EXPECT_THAT(assumed, Not(Contains("codec.zstd"))) << "its default is what it always was";
  KeepRecorded(assumed, *plain, &silent);
  EXPECT_EQ(silent.codec().pull_delta(), v1::PULL_DELTA_NONE);
  EXPECT_EQ(silent.codec().push(), v1::CODEC_BF16);
  EXPECT_FALSE(silent.codec().zstd());
}

TEST(ConfigCodecsTest, ARunOfAnOlderReleaseReadsItsFilesAsOneText) {
  v1::RunConfig config = *ParseRunConfig(kSampleYaml, "s.yaml");
  EXPECT_EQ(config.data().sequences(), v1::SEQUENCE_BOUNDS_WITHIN_FILES);
  EXPECT_THAT(AssumedFields({{"data", 3}}), Contains("data.sequences"));
  v1::RunConfig recorded = config;
  recorded.mutable_data()->clear_sequences();
  EXPECT_EQ(ToRunOptions(recorded)->data.sequences, SequenceBounds::kAcrossFiles);
  FillAbsent(&recorded);
  KeepRecorded({"data.sequences"}, recorded, &config);
  EXPECT_EQ(ToRunOptions(config)->data.sequences, SequenceBounds::kAcrossFiles);
}

TEST(ConfigCodecsTest, ErrorFeedbackThatKeepsNothingIsRejected) {
  EXPECT_THAT(Complaint(kSgd + "codec: {push: topk64, error_feedback: false}\n"),
              StartsWith("codec.error_feedback: 'topk64' omits most"));
  EXPECT_THAT(Complaint("codec: {push: int8, error_feedback_form: moving_average}\n"),
              StartsWith("codec.error_feedback_beta: 1 with"));
  EXPECT_EQ(Complaint("codec: {push: int8, error_feedback_form: moving_average, error_feedback_beta: 0.8, "
                      "error_feedback_reset: 1024}\n"),
            "");
}

}  // namespace
}  // namespace atl
