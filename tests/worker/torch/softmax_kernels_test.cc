#include "worker/torch/softmax_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace atl {
namespace {

std::vector<float> Logits(size_t n, float range) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = range * (static_cast<float>(i * 7919 % 4001) / 2000.0f - 1.0f);
  return x;
}

double ExactLogSum(const std::vector<float>& x) {
  double most = x[0], sum = 0;
  for (const float v : x) most = std::max<double>(most, v);
  for (const float v : x) sum += std::exp(v - most);
  return most + std::log(sum);
}

// Every length around the vector width, so that the rest loops run.
TEST(SoftmaxKernelsTest, IsTheCrossEntropyAndItsGradient) {
  for (const size_t n : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{65}, size_t{50257}}) {
    for (const float range : {0.0f, 1.0f, 30.0f, 1000.0f}) {
      const std::vector<float> x = Logits(n, range);
      const double log_sum = ExactLogSum(x);
      for (const size_t target : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> gradient = x;
        const double loss = CrossEntropyRow(n, target, 0.25f, gradient.data());
        EXPECT_NEAR(loss, log_sum - x[target], 3e-6 * std::abs(log_sum - x[target]) + 1e-6)
            << n << " " << range;
        for (size_t i = 0; i < n; ++i) {
          const double exact = 0.25 * (std::exp(x[i] - log_sum) - (i == target ? 1 : 0));
          ASSERT_NEAR(gradient[i], exact, 1e-6 * std::abs(exact) + 2e-8) << n << " " << range << " " << i;
        }
      }
    }
  }
}

TEST(SoftmaxKernelsTest, HugeLogitsDoNotOverflow) {
  std::vector<float> x = {3e38f, -3e38f, 3e38f};
  EXPECT_NEAR(CrossEntropyRow(3, 0, 1, x.data()), std::log(2), 1e-6);
  EXPECT_NEAR(x[0], -0.5, 1e-6);
  EXPECT_NEAR(x[1], 0, 1e-6);
  EXPECT_NEAR(x[2], 0.5, 1e-6);
}

TEST(SoftmaxKernelsTest, WhatIsNotFiniteShows) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity}) {
    for (const size_t at : {size_t{0}, size_t{20}, size_t{32}}) {
      std::vector<float> x = Logits(33, 1);
      x[at] = bad;
      EXPECT_TRUE(std::isnan(CrossEntropyRow(x.size(), 5, 1, x.data()))) << bad << " " << at;
    }
  }
  std::vector<float> x = {1, -infinity, 1};
  EXPECT_NEAR(CrossEntropyRow(3, 0, 1, x.data()), std::log(2), 1e-6) << "-infinity: no probability";
  EXPECT_NEAR(x[1], 0, 1e-30);
}

}  // namespace
}  // namespace atl
