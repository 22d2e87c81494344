#include "worker/torch/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace atl {
namespace {

TEST(TokenSamplerTest, ZeroTemperatureTakesTheLikeliest) {
  TokenSampler sampler(0, 0, 1);
  const std::array<float, 4> logits = {0.1f, 3.0f, -1.0f, 2.9f};
  EXPECT_EQ(*sampler.Draw(logits), 1);
}

TEST(TokenSamplerTest, DrawsInProportion) {
  TokenSampler sampler(2.0, 0, 42);
  const std::array<float, 3> logits = {0.0f, 2.0f * std::log(2.0f),
                                       2.0f * std::log(5.0f)};  // weights 1 : 2 : 5
  std::array<int, 3> counts{};
  for (int i = 0; i < 8000; ++i) ++counts[*sampler.Draw(logits)];
  EXPECT_NEAR(counts[0], 1000, 120);
  EXPECT_NEAR(counts[1], 2000, 160);
  EXPECT_NEAR(counts[2], 5000, 200);
}

TEST(TokenSamplerTest, TopKNeverDrawsTheRest) {
  TokenSampler sampler(5.0, 2, 42);
  const std::array<float, 4> logits = {1.0f, 0.9f, 1.1f, 0.8f};
  for (int i = 0; i < 200; ++i) {
    const uint16_t token = *sampler.Draw(logits);
    EXPECT_TRUE(token == 0 || token == 2) << token;
  }
}

TEST(TokenSamplerTest, RejectsADivergedModel) {
  TokenSampler sampler(1.0, 0, 1);
  const std::array<float, 2> logits = {0.0f, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(sampler.Draw(logits).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace atl
