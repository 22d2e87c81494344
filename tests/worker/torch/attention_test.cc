#include "worker/torch/attention.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(AttentionTest, AGroupOfHeadsReadsTheSameKeys) {
  torch::manual_seed(2);
  torch::Tensor q = torch::randn({2, 7, 6, 4}).requires_grad_(true);
  torch::Tensor k = torch::randn({2, 7, 3, 4}).requires_grad_(true);
  torch::Tensor v = torch::randn({2, 7, 3, 4}).requires_grad_(true);
  const torch::Tensor weight = torch::randn({2, 7, 6, 4});
  const auto gradients = [&](const torch::Tensor& mixed) {
    return torch::autograd::grad({(mixed * weight).sum()}, {q, k, v});
  };
  const torch::Tensor grouped = CausalAttention(q, k, v, /*dropout=*/0);
  // Heads 0 and 1 read keys 0, heads 2 and 3 keys 1.
  const torch::Tensor packed =
      torch::stack({q, k.repeat_interleave(2, 2), v.repeat_interleave(2, 2)}, 2).contiguous();
  const torch::Tensor plain = CausalAttention(packed, /*dropout=*/0);
  ASSERT_EQ(grouped.sizes(), plain.sizes());
  EXPECT_TRUE(grouped.is_contiguous());
  EXPECT_TRUE(torch::allclose(grouped, plain, 1e-5, 1e-6));
  const auto ours = gradients(grouped), theirs = gradients(plain);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(torch::allclose(ours[i], theirs[i], 1e-5, 1e-5)) << i;
}

}  // namespace
}  // namespace atl
