#include "worker/torch/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>

namespace atl {
namespace {

TEST(TokenSamplerTest, ZeroTemperatureTakesTheLikeliest) {
  TokenSampler sampler({.temperature = 0, .seed = 1});
  const std::array<float, 4> logits = {0.1f, 3.0f, -1.0f, 2.9f};
  EXPECT_EQ(*sampler.Draw(logits), 1);
}

TEST(TokenSamplerTest, DrawsInProportion) {
  TokenSampler sampler({.temperature = 2, .seed = 42});
  const std::array<float, 3> logits = {0.0f, 2.0f * std::log(2.0f),
                                       2.0f * std::log(5.0f)};  // weights 1 : 2 : 5
  std::array<int, 3> counts{};
  for (int i = 0; i < 8000; ++i) ++counts[*sampler.Draw(logits)];
  EXPECT_NEAR(counts[0], 1000, 120);
  EXPECT_NEAR(counts[1], 2000, 160);
  EXPECT_NEAR(counts[2], 5000, 200);
}

TEST(TokenSamplerTest, TopKNeverDrawsTheRest) {
  TokenSampler sampler({.temperature = 5, .top_k = 2, .seed = 42});
  const std::array<float, 4> logits = {1.0f, 0.9f, 1.1f, 0.8f};
  for (int i = 0; i < 200; ++i) {
    const uint16_t token = *sampler.Draw(logits);
    EXPECT_TRUE(token == 0 || token == 2) << token;
  }
}

/// Which tokens are drawn, in a thousand times.
std::set<TokenId> Drawn(const SamplingOptions& options, std::span<const float> logits) {
  TokenSampler sampler(options);
  std::set<TokenId> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(*sampler.Draw(logits));
  return drawn;
}

TEST(TokenSamplerTest, TopPDrawsAmongTheFewestWithItsShare) {
  // Probabilities 1/8, 4/8, 2/8, 1/8.
  const std::array<float, 4> logits = {0.0f, std::log(4.0f), std::log(2.0f), 0.0f};
  EXPECT_EQ(Drawn({.temperature = 1, .top_p = 0.4}, logits), (std::set<TokenId>{1}));
  EXPECT_EQ(Drawn({.temperature = 1, .top_p = 0.7}, logits), (std::set<TokenId>{1, 2}));
  EXPECT_EQ(Drawn({.temperature = 1, .top_p = 0.8}, logits), (std::set<TokenId>{0, 1, 2}))
      << "of equal ones the lower";
  EXPECT_EQ(Drawn({.temperature = 1, .top_p = 1}, logits), (std::set<TokenId>{0, 1, 2, 3}));
  // Of what top_k left: 4/6 and 2/6.
  EXPECT_EQ(Drawn({.temperature = 1, .top_k = 2, .top_p = 0.6}, logits), (std::set<TokenId>{1}));
  // The temperature comes first: 16/22, 4/22 and twice 1/22.
  EXPECT_EQ(Drawn({.temperature = 0.5, .top_p = 0.7}, logits), (std::set<TokenId>{1}));
}

TEST(TokenSamplerTest, RejectsADivergedModel) {
  TokenSampler sampler({.temperature = 1, .seed = 1});
  const std::array<float, 2> logits = {0.0f, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(sampler.Draw(logits).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace atl
