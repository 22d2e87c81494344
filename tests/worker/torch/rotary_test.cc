#include "worker/torch/rotary.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(RotaryTest, OnlyDistancesMatter) {
  torch::manual_seed(3);
  const RotaryPositions positions(RotaryFrequencies(8, 100, {}), 20, torch::kCPU);
  // One vector at every position.
  const torch::Tensor q = positions.Rotate(torch::randn({1, 1, 1, 8}).expand({1, 20, 1, 8})).view({20, 8});
  const torch::Tensor k = positions.Rotate(torch::randn({1, 1, 1, 8}).expand({1, 20, 1, 8})).view({20, 8});
  const torch::Tensor scores = torch::mm(q, k.t());
  for (int64_t distance = 0; distance < 19; ++distance) {
    const torch::Tensor same = scores.diagonal(-distance);
    EXPECT_LT((same - same[0]).abs().max().item<double>(), 1e-4) << distance;
  }
  EXPECT_GT((scores.diagonal(0)[0] - scores.diagonal(-1)[0]).abs().item<double>(), 1e-3);
}

TEST(RotaryTest, ScalesAsLlama31) {
  // Of Llama 3.2 1B: wavelengths below 8192 / 4 stay, above 8192 they are 32 times as long.
  const RopeScaling scaling = {
      .factor = 32, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192};
  const torch::Tensor plain = RotaryFrequencies(64, 5e5, {});
  const torch::Tensor scaled = RotaryFrequencies(64, 5e5, scaling);
  ASSERT_EQ(plain.numel(), 32);
  const auto ratio = [&](int64_t i) { return plain[i].item<double>() / scaled[i].item<double>(); };
  EXPECT_EQ(plain[0].item<double>(), 1);
  EXPECT_EQ(ratio(14), 1) << "its wavelength is 1956";
  EXPECT_NEAR(ratio(18), 32, 1e-4) << "its wavelength is 10089";
  // l = 2 pi 5e5^(15/32) = 2948.3, s = (8192 / l - 1) / 3 = 0.59285: 1 / ((1 - s) / 32 + s) = 1.6513.
  EXPECT_NEAR(ratio(15), 1.6513, 2e-4);
}

}  // namespace
}  // namespace atl
