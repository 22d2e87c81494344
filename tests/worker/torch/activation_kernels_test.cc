#include "worker/torch/activation_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace atl {
namespace {

double ExactGelu(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

double ExactSlope(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  const double du = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  const double t = std::tanh(u);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

// Every length around the vector width, so that the rest loops run.
std::vector<float> Arguments(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = -12.0f + 24.0f * static_cast<float>(i * 7919 % 4001) / 4000.0f;
  return x;
}

TEST(ActivationKernelsTest, GeluIsTheFormula) {
  for (const size_t n : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{4001}}) {
    const std::vector<float> x = Arguments(n);
    std::vector<float> out(n);
    GeluForward(n, x.data(), out.data());
    for (size_t i = 0; i < n; ++i) {
      const double exact = ExactGelu(x[i]);
      EXPECT_NEAR(out[i], exact, 1e-6 * std::abs(exact) + 1e-7) << "x = " << x[i];
    }
  }
}

TEST(ActivationKernelsTest, TheGradientIsTheDerivative) {
  for (const size_t n : {size_t{1}, size_t{31}, size_t{4001}}) {
    const std::vector<float> x = Arguments(n);
    const std::vector<float> grad(n, 3.0f);
    std::vector<float> out(n);
    GeluBackward(n, x.data(), grad.data(), out.data());
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(out[i], 3 * ExactSlope(x[i]), 5e-6) << "x = " << x[i];
  }
}

TEST(ActivationKernelsTest, ExtremesAndNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {100.0f, -100.0f, 1e30f, std::nanf(""), inf};
  std::vector<float> out(x.size());
  GeluForward(x.size(), x.data(), out.data());
  EXPECT_EQ(out[0], 100.0f);
  EXPECT_NEAR(out[1], 0.0f, 1e-30f);
  EXPECT_EQ(out[2], 1e30f);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], inf);
}

}  // namespace
}  // namespace atl
