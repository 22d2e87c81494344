#include "core/outer_optimizer.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

/// Steps one scalar through a sequence of pseudo-gradients.
struct Scalar {
  OuterOptions options;
  float theta = 1;
  std::vector<float> m = {0};
  std::vector<float> v = {0};
  uint64_t version = 0;

  void Step(float d) {
    const std::vector<std::span<float>> all = {m, v};
    const size_t vectors = OuterStateVectors(options.optimizer);
    OuterStepRange(options, ++version, std::span(&d, 1), std::span(&theta, 1), std::span(&theta, 1),
                   std::span(all).first(vectors));
  }
};

TEST(OuterOptimizer, NamesItsVectors) {
  EXPECT_EQ(OuterStateNames(OuterOptimizerKind::kNesterov)[0], "momentum");
  EXPECT_TRUE(OuterStateNames(OuterOptimizerKind::kSgd).empty());
  for (const auto kind : {OuterOptimizerKind::kAdam, OuterOptimizerKind::kDelayedNesterov}) {
    ASSERT_EQ(OuterStateVectors(kind), 2u);
    EXPECT_NE(OuterStateNames(kind)[0], OuterStateNames(kind)[1]);
  }
}

TEST(OuterOptimizer, NesterovFollowsTheGoldenTrace) {
  Scalar scalar{.options = {.learning_rate = 0.7, .momentum = 0.9}};
  const float d[] = {0.5f, 0.25f, -0.1f};
  const float theta[] = {0.335f, -0.281f, -0.5449f};
  const float velocity[] = {0.5f, 0.7f, 0.53f};
  for (int i = 0; i < 3; ++i) {
    scalar.Step(d[i]);
    EXPECT_NEAR(scalar.theta, theta[i], 1e-6);
    EXPECT_NEAR(scalar.m[0], velocity[i], 1e-6);
  }
}

TEST(OuterOptimizer, SgdOfOneIsWeightAveraging) {
  Scalar scalar{.options = {.optimizer = OuterOptimizerKind::kSgd, .learning_rate = 1}};
  scalar.Step(0.25f);
  EXPECT_EQ(scalar.theta, 0.75f);
  EXPECT_EQ(OuterStateVectors(OuterOptimizerKind::kSgd), 0u);
}

TEST(OuterOptimizer, NesterovWithoutMomentumIsSgd) {
  Scalar nesterov{.options = {.learning_rate = 0.7, .momentum = 0}};
  Scalar sgd{.options = {.optimizer = OuterOptimizerKind::kSgd, .learning_rate = 0.7}};
  for (const float d : {0.1f, -0.3f, 0.7f}) {
    nesterov.Step(d);
    sgd.Step(d);
    EXPECT_EQ(nesterov.theta, sgd.theta);
  }
}

TEST(OuterOptimizer, AdamIsTorchs) {
  // torch.optim.Adam([1.], lr=.1, betas=(.9, .95), eps=.1) written out in float64.
  Scalar scalar{.options = {.optimizer = OuterOptimizerKind::kAdam, .learning_rate = 0.1}};
  double theta = 1, m = 0, v = 0;
  for (int t = 1; t <= 5; ++t) {
    const double d = 0.3 * t - 0.7;
    m = 0.9 * m + 0.1 * d;
    v = 0.95 * v + 0.05 * d * d;
    theta -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 0.1);
    scalar.Step(static_cast<float>(d));
    EXPECT_NEAR(scalar.theta, theta, 1e-6) << t;
  }
}

TEST(OuterOptimizer, FirstAdamStepOfLargeGradientIsTheLearningRate) {
  Scalar scalar{.options = {.optimizer = OuterOptimizerKind::kAdam, .learning_rate = 0.1, .epsilon = 1e-8}};
  scalar.Step(1000.0f);
  EXPECT_NEAR(scalar.theta, 0.9, 1e-6);
}

class EveryOptimizer : public testing::TestWithParam<OuterOptimizerKind> {};
INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer,
                         testing::Values(OuterOptimizerKind::kNesterov, OuterOptimizerKind::kSgd,
                                         OuterOptimizerKind::kAdam, OuterOptimizerKind::kDelayedNesterov));

TEST_P(EveryOptimizer, InPlaceAndInPiecesGiveTheSameBits) {
  constexpr size_t kElements = 1037;
  const OuterOptions options{.optimizer = GetParam()};
  const std::vector<float> d = RandomValues(kElements, 1);
  const std::vector<float> theta = RandomValues(kElements, 2, 1.0f);
  std::vector<float> m = RandomValues(kElements, 3), v(kElements, 0.01f);
  std::vector<float> m2 = m, v2 = v, apart(kElements), in_place = theta;
  const size_t vectors = OuterStateVectors(GetParam());

  const std::vector<std::span<float>> state = {m, v};
  OuterStepRange(options, 4, d, theta, apart, std::span(state).first(vectors));
  for (size_t first = 0; first < kElements; first += 100) {
    const size_t n = std::min<size_t>(100, kElements - first);
    const std::span<float> piece = std::span(in_place).subspan(first, n);
    const std::vector<std::span<float>> part = {std::span(m2).subspan(first, n),
                                                std::span(v2).subspan(first, n)};
    OuterStepRange(options, 4, std::span(d).subspan(first, n), piece, piece, std::span(part).first(vectors));
  }
  EXPECT_EQ(Bits(apart), Bits(in_place));
  EXPECT_EQ(Bits(m), Bits(m2));
  EXPECT_EQ(Bits(v), Bits(v2));
}

}  // namespace
}  // namespace atl
