#include "core/error_feedback.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

constexpr size_t kElements = 6000;

class ErrorFeedbackOf : public testing::TestWithParam<CodecKind> {
 protected:
  const Codec& codec_ = CodecFor(GetParam());
  std::vector<std::byte> payload_ = std::vector<std::byte>(codec_.EncodedSize(kElements));
};
INSTANTIATE_TEST_SUITE_P(All, ErrorFeedbackOf, testing::ValuesIn(kCodecKinds),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

/// Whether sent + residual is the whole to the bit for every value within range (docs/reference/codecs.md).
bool IsExact(CodecKind kind) {
  switch (kind) {
    case CodecKind::kInt8Quantile:  // what lies beyond three deviations, and bins next to the middle
    case CodecKind::kTopK64:        // two levels for all
    case CodecKind::kTopK128:
      return false;
    default:
      return true;
  }
}

TEST_P(ErrorFeedbackOf, SentAndResidualMakeUpTheWholeToTheBit) {
  constexpr float kBeta = 0.95f;
  ErrorFeedback feedback(codec_, kBeta, kElements);
  for (uint64_t round = 0; round < 5; ++round) {
    const std::vector<float> before(feedback.residual().begin(), feedback.residual().end());
    const std::vector<float> delta = RandomValues(kElements, round);
    ASSERT_TRUE(feedback.Encode(delta, payload_).ok());
    const std::vector<float> sent = Decoded(codec_, payload_, kElements);
    for (size_t i = 0; i < kElements; ++i) {
      const float whole = kBeta * before[i] + delta[i];
      ASSERT_EQ(feedback.residual()[i], whole - sent[i]);
      if (!IsExact(GetParam())) continue;
      ASSERT_EQ(sent[i] + feedback.residual()[i], whole) << i;
    }
  }
}

TEST_P(ErrorFeedbackOf, MovesAnAverageAsLoCoDoes) {
  constexpr float kBeta = 0.8f;
  ErrorFeedback feedback(codec_, kBeta, kElements, ErrorFeedbackForm::kMovingAverage);
  for (uint64_t round = 0; round < 5; ++round) {
    const std::vector<float> before(feedback.residual().begin(), feedback.residual().end());
    const std::vector<float> delta = RandomValues(kElements, round);
    ASSERT_TRUE(feedback.Encode(delta, payload_).ok());
    const std::vector<float> sent = Decoded(codec_, payload_, kElements);
    for (size_t i = 0; i < kElements; ++i) {
      const float lost = before[i] + delta[i] - sent[i];
      ASSERT_EQ(feedback.residual()[i], kBeta * before[i] + (1 - kBeta) * lost);
    }
  }
}

TEST_P(ErrorFeedbackOf, PiecesMakeNoDifference) {
  constexpr size_t kMany = 2 * kPayloadPiece + 4097;
  ErrorFeedback feedback(codec_, 1, kMany);
  const std::vector<float> delta = RandomValues(kMany, 3);
  std::vector<std::byte> payload(codec_.EncodedSize(kMany));
  ASSERT_TRUE(feedback.Encode(delta, payload).ok());
  EXPECT_EQ(payload, Encoded(codec_, delta));
  const std::vector<float> sent = Decoded(codec_, payload, kMany);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(feedback.residual()[i], delta[i] - sent[i]) << i;
}

TEST_P(ErrorFeedbackOf, NothingIsLostOverManyRounds) {
  ErrorFeedback feedback(codec_, 1, kElements);
  std::vector<double> pushed(kElements), received(kElements);
  double largest = 0;
  for (uint64_t round = 0; round < 30; ++round) {
    const std::vector<float> delta = RandomValues(kElements, 100 + round);
    ASSERT_TRUE(feedback.Encode(delta, payload_).ok());
    const std::vector<float> sent = Decoded(codec_, payload_, kElements);
    for (size_t i = 0; i < kElements; ++i) {
      pushed[i] += delta[i];
      received[i] += sent[i];
      largest = std::max(largest, std::abs(double{delta[i]}));
    }
  }
  for (size_t i = 0; i < kElements; ++i) {
    // Each round rounds a whole that may hold all rounds so far.
    ASSERT_NEAR(pushed[i], received[i] + feedback.residual()[i], 30 * 30 * 6e-8 * largest) << i;
  }
}

TEST_P(ErrorFeedbackOf, ARejectedPushComesBack) {
  ErrorFeedback feedback(codec_, 1, kElements);
  const std::vector<float> delta = RandomValues(kElements, 1);
  ASSERT_TRUE(feedback.Encode(delta, payload_).ok());
  feedback.GiveBack(payload_);
  const std::vector<float> sent = Decoded(codec_, payload_, kElements);
  for (size_t i = 0; i < kElements; ++i) {
    const float largest = std::max(std::abs(delta[i]), std::abs(sent[i]));
    ASSERT_NEAR(feedback.residual()[i], delta[i], 1.2e-7 * largest) << i;
  }
}

TEST_P(ErrorFeedbackOf, AveragedTensorsHaveNoResidual) {
  constexpr ElementRange kStatistics = {1024, 1536};
  const auto inside = [&](size_t i) { return kStatistics.begin <= i && i < kStatistics.end; };
  for (const ErrorFeedbackForm form : {ErrorFeedbackForm::kCarry, ErrorFeedbackForm::kMovingAverage}) {
    ErrorFeedback feedback(codec_, 0.9, kElements, form, {kStatistics});
    ErrorFeedback plain(codec_, 0.9, kElements, form);
    const std::vector<float> delta = RandomValues(kElements, 1);
    const auto expect_none_there = [&](const char* after) {
      for (size_t i = 0; i < kElements; ++i) {
        ASSERT_EQ(feedback.residual()[i], inside(i) ? 0.0f : plain.residual()[i]) << i << " after " << after;
      }
    };
    ASSERT_TRUE(feedback.Encode(delta, payload_).ok());
    const std::vector<std::byte> first = payload_;
    ASSERT_TRUE(plain.Encode(delta, payload_).ok());
    EXPECT_EQ(payload_, first);
    expect_none_there("Encode");
    feedback.GiveBack(payload_);
    plain.GiveBack(payload_);
    expect_none_there("GiveBack");
    ASSERT_TRUE(feedback.Restore(RandomValues(kElements, 2)).ok());
    ASSERT_TRUE(plain.Restore(RandomValues(kElements, 2)).ok());
    expect_none_there("Restore");
  }
}

/// A worker measures statistics that do not change, and adopts each version. What an encoding lost is in the
/// next difference; with a residual it would be sent twice, and a value that waits for its turn under topk
/// many times.
TEST_P(ErrorFeedbackOf, VersionsOfAveragedTensorsReachTheStatisticsWithoutOvershooting) {
  ErrorFeedback feedback(codec_, 1, kElements, ErrorFeedbackForm::kCarry, {{0, 5888}});
  const std::vector<float> measured = RandomValues(kElements, 1, 1.0f);
  std::vector<float> version(kElements);
  std::vector<float> delta(kElements);
  float largest = 0;
  for (const float value : measured) largest = std::max(largest, std::abs(value));
  for (int round = 0; round < 150; ++round) {
    for (size_t i = 0; i < 5888; ++i) delta[i] = version[i] - measured[i];
    ASSERT_TRUE(feedback.Encode(delta, payload_).ok());
    const std::vector<float> sent = Decoded(codec_, payload_, kElements);
    for (size_t i = 0; i < 5888; ++i) {
      version[i] -= sent[i];
      ASSERT_LE(std::abs(version[i] - measured[i]), largest) << i << " in round " << round;
    }
  }
  for (size_t i = 0; i < 5888; ++i) ASSERT_NEAR(version[i], measured[i], 0.02 * largest) << i;
}

TEST(ErrorFeedback, LosslessCodecLeavesNoResidual) {
  ErrorFeedback feedback(CodecFor(CodecKind::kFp32), 1, kElements);
  std::vector<std::byte> payload(kElements * 4);
  ASSERT_TRUE(feedback.Encode(RandomValues(kElements, 1), payload).ok());
  EXPECT_THAT(feedback.residual(), testing::Each(0.0f));
}

TEST(ErrorFeedback, RejectsNonFiniteAndKeepsItsResidual) {
  const Codec& codec = CodecFor(CodecKind::kInt8);
  ErrorFeedback feedback(codec, 1, kElements);
  std::vector<std::byte> payload(codec.EncodedSize(kElements));
  ASSERT_TRUE(feedback.Encode(RandomValues(kElements, 1), payload).ok());
  const std::vector<float> before(feedback.residual().begin(), feedback.residual().end());
  std::vector<float> bad = RandomValues(kElements, 2);
  bad[5999] = std::numeric_limits<float>::infinity();
  const absl::Status status = feedback.Encode(bad, payload);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("element 5999"));
  EXPECT_EQ(Bits(feedback.residual()), Bits(before));
}

TEST(ErrorFeedback, ResidualSurvivesARestart) {
  const Codec& codec = CodecFor(CodecKind::kInt8);
  ErrorFeedback first(codec, 0.9, kElements), second(codec, 0.9, kElements);
  std::vector<std::byte> payload(codec.EncodedSize(kElements)), again = payload;
  ASSERT_TRUE(first.Encode(RandomValues(kElements, 1), payload).ok());
  ASSERT_TRUE(second.Restore(first.residual()).ok());
  ASSERT_TRUE(first.Encode(RandomValues(kElements, 2), payload).ok());
  ASSERT_TRUE(second.Encode(RandomValues(kElements, 2), again).ok());
  EXPECT_EQ(payload, again);

  EXPECT_EQ(second.Restore(std::vector<float>(3)).code(), absl::StatusCode::kInvalidArgument);
  std::vector<float> nan(kElements, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(second.Restore(nan).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Bits(second.residual()), Bits(first.residual()));
  second.Reset();
  EXPECT_THAT(second.residual(), testing::Each(0.0f));
}

}  // namespace
}  // namespace atl
