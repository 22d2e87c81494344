// Every merge: against an independent float64 computation, and its bits against threads, ranges and order.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/merge_fixture.h"
#include "tests/core/merge_reference.h"

namespace atl {
namespace {

struct Case {
  const char* name;
  MergeOptions options;
};

void PrintTo(const Case& merge, std::ostream* out) { *out << merge.name; }

const Case kCases[] = {
    {"mean", {}},
    {"guarded_mean", {.norm_guard = true}},
    {"rda", {.method = MergeMethod::kRda}},
    {"guarded_rda", {.method = MergeMethod::kRda, .norm_guard = true}},
    {"trimmed_mean", {.method = MergeMethod::kTrimmedMean}},
    {"guarded_trimmed_mean", {.method = MergeMethod::kTrimmedMean, .trim = 0.34, .norm_guard = true}},
    {"untrimmed_mean", {.method = MergeMethod::kTrimmedMean, .trim = 0.1}},
    {"median", {.method = MergeMethod::kMedian}},
    {"guarded_median", {.method = MergeMethod::kMedian, .norm_guard = true}},
    {"centered_clip", {.method = MergeMethod::kCenteredClip}},
    {"centered_clip_once", {.method = MergeMethod::kCenteredClip, .clip_radius = 0.1, .clip_iterations = 1}},
    {"centered_clip_often", {.method = MergeMethod::kCenteredClip, .clip_radius = 0.3, .clip_iterations = 7}},
    {"guarded_centered_clip", {.method = MergeMethod::kCenteredClip, .norm_guard = true}},
    {"centered_clip_by_distance", {.method = MergeMethod::kCenteredClip, .clip_by_distance = true}},
    {"guarded_centered_clip_by_distance",
     {.method = MergeMethod::kCenteredClip,
      .clip_iterations = 4,
      .clip_by_distance = true,
      .norm_guard = true}},
};

class EveryMerge : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, EveryMerge, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

const std::vector<CodecKind> kMixed = {CodecKind::kFp32, CodecKind::kInt8, CodecKind::kBf16,
                                       CodecKind::kFp16};

/// An embedding, then tensors that end inside a block of 4096; the contributions agree more or less, and are
/// of quite different sizes.
MergeRound MixedRound(size_t workers, uint64_t last_tensor = 5000) {
  const FragmentLayout layout = LayoutOf({5000, 300, 2 * 4096 + 7, 1, last_tensor});
  const std::vector<float> common = RandomDelta(layout, 1);
  std::vector<std::vector<float>> deltas;
  std::vector<double> weights;
  for (size_t w = 0; w < workers; ++w) {
    const float size = 0.25f + static_cast<float>(w);
    deltas.push_back(RandomDelta(layout, 10 + w, 7e-4f));
    for (size_t k = 0; k < layout.elements; ++k) deltas[w][k] = size * (common[k] + deltas[w][k]);
    weights.push_back(1 + static_cast<double>(w * w));
  }
  return MergeRound(layout, deltas, weights, kMixed);
}

TEST_P(EveryMerge, IsTheFloat64ReferenceToWithinFloat32) {
  for (const size_t workers : {1, 2, 5, 8}) {
    const MergeRound round = MixedRound(workers);
    const std::vector<std::vector<float>> decoded = round.decoded();
    Vector weights;
    for (const MergeInput& input : round.inputs) weights.push_back(input.weight);
    MergeOptions options = GetParam().options;
    // Between the smallest and the largest distance, so that some are clipped and some are not.
    if (options.clip_radius > 0) options.clip_radius *= 10 * round.inputs.front().norm;
    const std::vector<float> merged = Merged(round, options);
    const Vector reference = ReferenceMerge(decoded, weights, options, round.layout);
    for (size_t k = 0; k < merged.size(); ++k) {
      double magnitude = 0;
      for (const std::vector<float>& x : decoded) magnitude += std::abs(double{x[k]});
      // A product and an addition for each contribution, each rounded to 2^-24.
      ASSERT_NEAR(merged[k], reference[k], 0x1p-22 * magnitude + 1e-12) << workers << " workers, value " << k;
    }
  }
}

TEST_P(EveryMerge, HasTheSameBitsOnAnyThreadsAndRanges) {
  const MergeRound round = MixedRound(5, NormPass::kNormPiece);  // the last tensor lies in two pieces
  const std::vector<uint32_t> expected = Bits(Merged(round, GetParam().options));
  for (const size_t threads : {2, 3, 4}) {
    EXPECT_EQ(Bits(Merged(round, GetParam().options, threads, 4096 * threads)), expected) << threads;
  }
}

TEST_P(EveryMerge, OfNothingButZerosIsZero) {
  const FragmentLayout layout = LayoutOf({300, 5000});
  const MergeRound round(layout, std::vector<std::vector<float>>(4, std::vector<float>(layout.elements)),
                         {1, 2, 3, 4});
  for (const float value : Merged(round, GetParam().options)) ASSERT_EQ(value, 0.0f);
}

TEST_P(EveryMerge, OfOneContributionIsThatContribution) {
  MergeOptions options = GetParam().options;
  options.clip_radius = 0;  // of one, the median is its own norm
  const FragmentLayout layout = LayoutOf({300, 5000});
  const std::vector<float> delta = RandomDelta(layout, 7);
  EXPECT_EQ(Bits(Merged(MergeRound(layout, {delta}, {3}), options)), Bits(delta));
}

TEST_P(EveryMerge, StandsAContributionNextToNothing) {
  // Its direction would be found by dividing by a norm that float32 hardly holds.
  const FragmentLayout layout = LayoutOf({300, 5000});
  std::vector<float> speck(layout.elements);
  speck[600] = 1e-44f;
  const MergeRound round(layout, {RandomDelta(layout, 1), speck, RandomDelta(layout, 2)}, {1, 1, 1});
  for (const float value : Merged(round, GetParam().options)) ASSERT_TRUE(std::isfinite(value));
}

TEST(WeightedMean, WithoutGuardIsTheWeightsAsRecordedToTheBit) {
  const MergeRound round = MixedRound(4);
  const std::vector<std::vector<float>> decoded = round.decoded();
  std::vector<float> expected(round.layout.elements);
  for (size_t i = 0; i < decoded.size(); ++i) {
    for (size_t k = 0; k < expected.size(); ++k) expected[k] += round.inputs[i].weight * decoded[i][k];
  }
  EXPECT_EQ(Bits(Merged(round, {})), Bits(expected));
}

TEST(NormGuard, ThatScalesNobodyChangesNoBit) {
  const FragmentLayout layout = LayoutOf({6000});
  const std::vector<float> delta = RandomDelta(layout, 3);
  std::vector<float> opposite = delta;
  for (float& value : opposite) value = -value;
  const MergeRound round(layout, {delta, opposite, delta}, {1, 2, 5});
  EXPECT_EQ(Bits(Merged(round, {.norm_guard = true})), Bits(Merged(round, {})));
}

TEST(CoordinateWise, DoesNotDependOnTheOrderOfContributions) {
  const FragmentLayout layout = LayoutOf({5000});
  std::vector<std::vector<float>> deltas;
  for (uint64_t w = 0; w < 7; ++w) deltas.push_back(RandomDelta(layout, w));
  std::vector<std::vector<float>> turned(deltas.rbegin(), deltas.rend());
  const std::vector<double> weights(7, 1.0);
  for (const MergeMethod method : {MergeMethod::kTrimmedMean, MergeMethod::kMedian}) {
    EXPECT_EQ(Bits(Merged(MergeRound(layout, deltas, weights), {.method = method})),
              Bits(Merged(MergeRound(layout, turned, weights), {.method = method})));
  }
}

}  // namespace
}  // namespace atl
