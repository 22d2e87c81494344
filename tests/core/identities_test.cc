// What DiLoCo must reduce to, through the same code that a round runs: encode, merge, step.

#include <cmath>
#include <vector>

#include "core/fused_outer_step.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

constexpr size_t kElements = 5000;

/// One outer step from `theta`, given each worker's parameters after its inner steps.
std::vector<float> OuterRound(const std::vector<float>& theta, const std::vector<std::vector<float>>& locals,
                              const OuterOptions& options, std::vector<float>& velocity) {
  std::vector<std::vector<std::byte>> payloads;
  std::vector<WeightInput> weight_inputs(locals.size(), {.tokens = 10, .steps = 1});
  const std::vector<float> weights = NormalisedWeights(MergeWeighting::kTokens, weight_inputs);
  for (const std::vector<float>& local : locals) {
    std::vector<float> delta(kElements);
    for (size_t i = 0; i < kElements; ++i) delta[i] = theta[i] - local[i];
    payloads.push_back(Encoded(CodecFor(CodecKind::kFp32), delta));
  }
  std::vector<MergeInput> inputs;
  for (size_t w = 0; w < locals.size(); ++w) {
    inputs.push_back({.codec = &CodecFor(CodecKind::kFp32), .payload = payloads[w], .weight = weights[w]});
  }
  std::vector<float> out(kElements);
  const std::vector<std::span<float>> state = {velocity};
  const MergePlan plan = WeightedMeanPlan(inputs, kElements);
  EXPECT_TRUE(MergeAndStepRange(plan, options, 1, 0, theta, out, state).ok());
  return out;
}

std::vector<float> Moved(const std::vector<float>& theta, uint64_t seed) {
  std::vector<float> local = RandomValues(kElements, seed, 0.01f);
  for (size_t i = 0; i < kElements; ++i) local[i] += theta[i];
  return local;
}

TEST(Identities, LearningRateOneWithoutMomentumIsWeightAveraging) {
  const std::vector<float> theta = RandomValues(kElements, 1, 1.0f);
  const std::vector<std::vector<float>> locals = {Moved(theta, 2), Moved(theta, 3), Moved(theta, 4),
                                                  Moved(theta, 5)};
  std::vector<float> velocity(kElements);
  const std::vector<float> out = OuterRound(theta, locals, {.learning_rate = 1, .momentum = 0}, velocity);
  for (size_t i = 0; i < kElements; ++i) {
    const double mean = (double{locals[0][i]} + locals[1][i] + locals[2][i] + locals[3][i]) / 4;
    ASSERT_NEAR(out[i], mean, 2e-7 * (1 + std::abs(mean)));
  }
}

TEST(Identities, OneInnerSgdStepIsDataParallel) {
  // Inner SGD with H = 1: worker w's parameters are theta - lr * g_w; data-parallel steps with the mean
  // gradient.
  constexpr float kRate = 0.1f;
  const std::vector<float> theta = RandomValues(kElements, 1, 1.0f);
  std::vector<std::vector<float>> gradients, locals;
  for (uint64_t w = 0; w < 3; ++w) {
    gradients.push_back(RandomValues(kElements, 10 + w, 0.1f));
    locals.push_back(theta);
    for (size_t i = 0; i < kElements; ++i) locals[w][i] -= kRate * gradients[w][i];
  }
  std::vector<float> velocity(kElements);
  const std::vector<float> out = OuterRound(theta, locals, {.learning_rate = 1, .momentum = 0}, velocity);
  for (size_t i = 0; i < kElements; ++i) {
    const double mean = (double{gradients[0][i]} + gradients[1][i] + gradients[2][i]) / 3;
    ASSERT_NEAR(out[i], theta[i] - double{kRate} * mean, 3e-7 * (1 + std::abs(theta[i])));
  }
}

TEST(Identities, IdenticalWorkersCountAsOne) {
  const std::vector<float> theta = RandomValues(kElements, 1, 1.0f);
  const std::vector<float> local = Moved(theta, 2);
  std::vector<float> velocity_one = RandomValues(kElements, 3);
  const std::vector<float> start = velocity_one;
  const OuterOptions options;
  const std::vector<float> one = OuterRound(theta, {local}, options, velocity_one);
  for (const size_t k : {2, 3, 4, 7, 8}) {
    std::vector<float> velocity = start;
    const std::vector<float> many =
        OuterRound(theta, std::vector<std::vector<float>>(k, local), options, velocity);
    if (k == 2) {  // halves are exact; sums of more summands round
      EXPECT_EQ(Bits(many), Bits(one));
    }
    for (size_t i = 0; i < kElements; ++i) ASSERT_NEAR(many[i], one[i], 1e-6 * (1 + std::abs(one[i]))) << k;
  }
}

}  // namespace
}  // namespace atl
