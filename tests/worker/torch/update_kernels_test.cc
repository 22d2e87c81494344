#include "worker/torch/update_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace atl {
namespace {

std::vector<float> Numbers(size_t n, uint32_t seed) {
  std::vector<float> values(n);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<double>(seed) / 4294967296.0 - 0.5);
  }
  return values;
}

TEST(UpdateKernelsTest, SumOfSquaresIsExactEnoughAndIndependentOfTheCut) {
  const std::vector<float> values = Numbers(3 * kSumBlock + 21, 1);
  double exact = 0;
  for (const float value : values) exact += double{value} * value;
  const double whole = SumOfSquares(values.size(), values.data());
  EXPECT_NEAR(whole, exact, 1e-12 * exact);
  const double first = SumOfSquares(kSumBlock, values.data());
  const double second = SumOfSquares(kSumBlock, values.data() + kSumBlock);
  const double third = SumOfSquares(kSumBlock, values.data() + 2 * kSumBlock);
  const double rest = SumOfSquares(21, values.data() + 3 * kSumBlock);
  EXPECT_EQ(whole, ((first + second) + third) + rest);
}

TEST(UpdateKernelsTest, AdamBitsDoNotDependOnTheCut) {
  const size_t n = 1003;
  AdamStep step{.gradient_scale = 0.5f,
                .beta1 = 0.9f,
                .beta2 = 0.99f,
                .one_minus_beta1 = 0.1f,
                .one_minus_beta2 = 0.01f,
                .step_size = 1e-2f,
                .inverse_root_correction = 10.0f,
                .epsilon = 1e-8f,
                .keep = 0.999f};
  std::vector<float> theta = Numbers(n, 1), gradient = Numbers(n, 2), m = Numbers(n, 3), v(n, 0.01f);
  std::vector<float> theta2 = theta, gradient2 = gradient, m2 = m, v2 = v;
  AdamRange(step, n, theta.data(), gradient.data(), m.data(), v.data());
  for (size_t begin = 0; begin < n; begin += 7) {
    AdamRange(step, std::min<size_t>(7, n - begin), &theta2[begin], &gradient2[begin], &m2[begin],
              &v2[begin]);
  }
  EXPECT_EQ(theta, theta2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
  EXPECT_EQ(gradient, std::vector<float>(n, 0.0f));
}

TEST(UpdateKernelsTest, SgdWithMomentumByHand) {
  std::vector<float> theta = {1.0f}, gradient = {2.0f}, buffer = {0.5f};
  SgdRange(0.5f, 0.9f, 0.1f, 1, theta.data(), gradient.data(), buffer.data());
  EXPECT_FLOAT_EQ(buffer[0], 0.9f * 0.5f + 1.0f);
  EXPECT_FLOAT_EQ(theta[0], 1.0f - 0.1f * 1.45f);
  EXPECT_EQ(gradient[0], 0.0f);
}

}  // namespace
}  // namespace atl
