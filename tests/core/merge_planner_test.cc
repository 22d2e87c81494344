#include "core/merge_planner.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/merge_fixture.h"

// What the merges are for, on vectors small enough to see through.

namespace atl {
namespace {

using testing::Each;
using testing::FloatEq;

/// One tensor of 256 values of which the first few are given.
std::vector<float> Delta(std::vector<float> values) {
  values.resize(256);
  return values;
}

const FragmentLayout kOneTensor = LayoutOf({256});

std::vector<float> FirstOf(const std::vector<float>& merged, size_t n) {
  return {merged.begin(), merged.begin() + static_cast<std::ptrdiff_t>(n)};
}

TEST(Rda, OfTwoOrthogonalDeltasOfNormTwoHasNormTwo) {
  const MergeRound round(kOneTensor, {Delta({2, 0}), Delta({0, 2})}, {1, 1});
  const std::vector<float> merged = Merged(round, {.method = MergeMethod::kRda});
  EXPECT_THAT(FirstOf(merged, 2), Each(FloatEq(std::sqrt(2.0f))));
  EXPECT_NEAR(VectorNorm(merged), 2.0, 1e-6) << "a plain mean would have lost 0.59 of it";
}

TEST(Rda, AveragesNormAndDirectionApart) {
  // Weights 3/4 and 1/4: norm 3/4 * 1 + 1/4 * 5 = 2, direction (3/4, 1/4) / |(3/4, 1/4)|.
  const MergeRound round(kOneTensor, {Delta({1, 0}), Delta({0, 5})}, {3, 1});
  const std::vector<float> merged = Merged(round, {.method = MergeMethod::kRda});
  EXPECT_THAT(merged[0], FloatEq(2 * 3 / std::sqrt(10.0f)));
  EXPECT_THAT(merged[1], FloatEq(2 * 1 / std::sqrt(10.0f)));
}

TEST(Rda, DoesNotMoveWhereTheDirectionsCancel) {
  const std::vector<float> there = RandomValues(256, 1);
  std::vector<float> back = there;
  for (float& value : back) value *= -3;
  const MergeRound round(kOneTensor, {there, back}, {1, 1});
  EXPECT_THAT(Merged(round, {.method = MergeMethod::kRda}), Each(0.0f));
}

TEST(Rda, AveragesEmbeddingsPlainlyAndEveryOtherTensorByItself) {
  const FragmentLayout layout = LayoutOf({256, 256, 256});  // the first is an embedding
  std::vector<float> a(layout.elements), b(layout.elements);
  a[0] = 2, b[1] = 2;      // embedding
  a[256] = 2, b[257] = 2;  // orthogonal
  a[512] = 1;              // b has nothing here: a's direction, half its norm
  const std::vector<float> merged = Merged(MergeRound(layout, {a, b}, {1, 1}), {.method = MergeMethod::kRda});
  EXPECT_EQ(merged[0], 1.0f);
  EXPECT_EQ(merged[1], 1.0f);
  EXPECT_FLOAT_EQ(merged[256], std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(merged[512], 0.5f);
}

TEST(Rda, AveragesAveragedTensorsPlainly) {
  FragmentLayout layout = LayoutOf({256, 256, 256});
  layout.slots[1].averaged = true;
  std::vector<float> a(layout.elements), b(layout.elements);
  a[256] = 2, b[257] = 2;  // averaged
  a[512] = 2, b[513] = 2;  // orthogonal
  const MergeRound round(layout, {a, b}, {1, 1});
  const std::vector<float> merged = Merged(round, {.method = MergeMethod::kRda});
  EXPECT_EQ(merged[256], 1.0f);
  EXPECT_EQ(merged[257], 1.0f);
  EXPECT_FLOAT_EQ(merged[512], std::sqrt(2.0f));
}

TEST(AveragedTensors, AreMergedAsParametersByEveryOtherMethod) {
  FragmentLayout layout = LayoutOf({256, 256});
  const std::vector<std::vector<float>> deltas = {RandomDelta(layout, 1), RandomDelta(layout, 2),
                                                  RandomDelta(layout, 3, 1e-2f)};
  for (const MergeMethod method :
       {MergeMethod::kMean, MergeMethod::kTrimmedMean, MergeMethod::kMedian, MergeMethod::kCenteredClip}) {
    for (const bool guard : {false, true}) {
      const MergeOptions options = {.method = method, .trim = 0.34, .norm_guard = guard};
      layout.slots[1].averaged = false;
      const std::vector<float> plain = Merged(MergeRound(layout, deltas, {1, 2, 3}), options);
      layout.slots[1].averaged = true;
      EXPECT_EQ(Bits(Merged(MergeRound(layout, deltas, {1, 2, 3}), options)), Bits(plain));
    }
  }
}

TEST(NormGuard, ScalesTheLargeOnesDownToTheMedian) {
  const MergeRound round(kOneTensor, {Delta({1}), Delta({0, 2}), Delta({0, 0, 100})}, {1, 1, 2});
  const std::vector<float> merged = Merged(round, {.norm_guard = true});
  EXPECT_FLOAT_EQ(merged[0], 0.25f);
  EXPECT_FLOAT_EQ(merged[1], 0.5f);
  EXPECT_FLOAT_EQ(merged[2], 0.5f * 2);
}

TEST(NormGuard, DoesNotCountThoseThatDidNothing) {
  const MergeRound round(kOneTensor, {Delta({}), Delta({}), Delta({}), Delta({4})}, {1, 1, 1, 1});
  EXPECT_EQ(Merged(round, {.norm_guard = true})[0], 1.0f);
  EXPECT_EQ(Merged(round, {.method = MergeMethod::kCenteredClip, .clip_iterations = 1})[0], 1.0f);
}

TEST(TrimmedMean, DropsAFractionAtEachEndAndKeepsAtLeastOne) {
  std::vector<std::vector<float>> deltas;
  for (const float value : {7.0f, -1000.0f, 3.0f, 2.0f, 1e6f}) deltas.push_back(Delta({value}));
  const MergeRound round(kOneTensor, deltas, {1, 1, 1, 1, 1});
  EXPECT_EQ(Merged(round, {.method = MergeMethod::kTrimmedMean, .trim = 0.2})[0], 4.0f);
  EXPECT_EQ(Merged(round, {.method = MergeMethod::kTrimmedMean, .trim = 0.49})[0], 3.0f);
  EXPECT_EQ(Merged(round, {.method = MergeMethod::kMedian})[0], 3.0f);
  deltas.pop_back();
  EXPECT_EQ(Merged(MergeRound(kOneTensor, deltas, {1, 1, 1, 1}), {.method = MergeMethod::kMedian})[0], 2.5f);
}

TEST(TrimmedMean, CountsByDecimalFractions) {
  // 0.29 * 100 is 28.999999999999996 in binary.
  std::vector<std::vector<float>> deltas;
  for (int i = 0; i < 100; ++i) deltas.push_back(Delta({static_cast<float>(i)}));
  const MergeRound round(kOneTensor, deltas, std::vector<double>(100, 1.0));
  const MergePlanner planner({.method = MergeMethod::kTrimmedMean, .trim = 0.29}, round.inputs, round.layout);
  EXPECT_EQ(planner.plan().trimmed, 29u);
  EXPECT_EQ(Merged(round, {.method = MergeMethod::kTrimmedMean, .trim = 0.29})[0], 49.5f);
}

TEST(CenteredClip, MovesBySteps) {
  // Two at 1, one at 10, radius 1, uniform: v = 1 after one pass; then only the third pulls, by 1/3 a pass.
  const MergeRound round(kOneTensor, {Delta({1}), Delta({1}), Delta({10})}, {1, 1, 1});
  MergeOptions options{.method = MergeMethod::kCenteredClip, .clip_radius = 1, .clip_iterations = 1};
  EXPECT_FLOAT_EQ(Merged(round, options)[0], 1.0f);
  options.clip_iterations = 2;
  EXPECT_FLOAT_EQ(Merged(round, options)[0], 4.0f / 3);
  options.clip_iterations = 3;  // 4/3 + (-1/3 - 1/3 + 1) / 3
  EXPECT_FLOAT_EQ(Merged(round, options)[0], 4.0f / 3 + 1.0f / 9);
}

TEST(CenteredClip, TakesTheMedianDistanceAnewAtEveryPass) {
  // Six at 1, two at -1. From 0 all are at the median distance 1: v = 1/2. From there the six are at 1/2,
  // which is the median, and the two at 3/2: v = 1/2 + (6 * 1/2 - 2 * 1/2) / 8 = 3/4; each pass halves what
  // is missing.
  std::vector<std::vector<float>> deltas(6, Delta({1}));
  deltas.resize(8, Delta({-1}));
  const MergeRound round(kOneTensor, deltas, std::vector<double>(8, 1.0));
  MergeOptions options{.method = MergeMethod::kCenteredClip, .clip_by_distance = true};
  for (const uint32_t passes : {1U, 2U, 3U, 5U}) {
    options.clip_iterations = passes;
    EXPECT_FLOAT_EQ(Merged(round, options)[0], 1 - std::pow(0.5f, static_cast<float>(passes)));
  }
  options.clip_by_distance = false;  // the radius of before stays at the norm, and the two hold v back
  options.clip_iterations = 50;
  EXPECT_NEAR(Merged(round, options)[0], 2.0f / 3, 1e-6);
}

TEST(MergePlanner, TellsWhatItScaledBy) {
  const MergeRound round(kOneTensor, {Delta({1}), Delta({2}), Delta({8})}, {1, 1, 1});
  MergePlanner guarded({.norm_guard = true}, round.inputs, round.layout);
  EXPECT_EQ(guarded.guard_factors(), (std::vector<double>{1, 1, 0.25}));
  EXPECT_EQ(guarded.clip_factors(), (std::vector<double>{1, 1, 1}));
  MergePlanner clipped({.method = MergeMethod::kCenteredClip, .clip_iterations = 1}, round.inputs,
                       round.layout);
  EXPECT_EQ(clipped.guard_factors(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(clipped.clip_factors(), (std::vector<double>{1, 1, 0.25}));
}

TEST(Merges, OneWorkerOfEightThatTurnsTheSignIsStood) {
  const FragmentLayout layout = LayoutOf({5000});
  const std::vector<float> truth = RandomDelta(layout, 1);
  std::vector<std::vector<float>> deltas;
  for (uint64_t w = 0; w < 8; ++w) {
    deltas.push_back(RandomDelta(layout, 2 + w, 3e-4f));
    for (size_t k = 0; k < layout.elements; ++k) deltas[w][k] += truth[k];
  }
  for (float& value : deltas[5]) value *= -50;
  const MergeRound round(layout, deltas, std::vector<double>(8, 1.0));
  const auto error = [&](const MergeOptions& options) {
    std::vector<float> merged = Merged(round, options);
    for (size_t k = 0; k < merged.size(); ++k) merged[k] -= truth[k];
    return VectorNorm(merged) / VectorNorm(truth);
  };
  EXPECT_GT(error({}), 5.0) << "the mean goes the wrong way";
  EXPECT_LT(error({.method = MergeMethod::kMedian}), 0.35);
  EXPECT_LT(error({.method = MergeMethod::kTrimmedMean}), 0.35);
  EXPECT_LT(error({.method = MergeMethod::kCenteredClip}), 0.35);
  EXPECT_LT(error({.method = MergeMethod::kCenteredClip, .clip_by_distance = true}), 0.2);
  EXPECT_LT(error({.norm_guard = true}), 0.35);
}

TEST(MergePlanner, ReadsThePayloadsOnlyAsOftenAsTheMergeNeeds) {
  const MergeRound round(kOneTensor, {Delta({1}), Delta({2}), Delta({3})}, {1, 1, 1});
  const auto passes = [&](const MergeOptions& options) {
    MergePlanner planner(options, round.inputs, round.layout);
    int count = 0;
    for (; planner.needs_pass(); ++count) {
      for (size_t piece = 0; piece < planner.pieces(); ++piece) planner.Measure(piece);
      planner.EndPass();
    }
    return count;
  };
  EXPECT_EQ(passes({}), 0);
  EXPECT_EQ(passes({.norm_guard = true}), 0);
  EXPECT_EQ(passes({.method = MergeMethod::kMedian, .norm_guard = true}), 0);
  EXPECT_EQ(passes({.method = MergeMethod::kRda}), 2);
  EXPECT_EQ(passes({.method = MergeMethod::kCenteredClip, .clip_iterations = 1}), 0);
  EXPECT_EQ(passes({.method = MergeMethod::kCenteredClip, .clip_iterations = 4}), 3);
}

}  // namespace
}  // namespace atl
