#include "worker/torch/attention.h"

#include <torch/version.h>

#include <cmath>
#include <limits>
#include <vector>

namespace atl {
namespace {

// Where the library has no fused kernel.
[[maybe_unused]] torch::Tensor PlainAttention(const torch::Tensor& q, const torch::Tensor& k,
                                              const torch::Tensor& v, double dropout) {
  const int64_t time = q.size(2);
  const torch::Tensor hidden =
      torch::full({time, time}, -std::numeric_limits<float>::infinity(), q.options()).triu_(1);
  // baddbmm adds the mask while it multiplies: one pass less over [batch, heads, time, time].
  const int64_t batch = q.size(0) * q.size(1);
  const auto flat = [&](const torch::Tensor& t) { return t.reshape({batch, time, t.size(3)}); };
  torch::Tensor weights = torch::baddbmm(hidden, flat(q), flat(k).transpose(1, 2), /*beta=*/1,
                                         /*alpha=*/1.0 / std::sqrt(static_cast<double>(q.size(3))));
  weights = torch::softmax(weights, -1);
  if (dropout > 0) weights = torch::dropout(weights, dropout, /*train=*/true);
  return torch::bmm(weights, flat(v)).view(q.sizes());
}

}  // namespace

torch::Tensor CausalAttention(const torch::Tensor& qkv, double dropout) {
  // Unbound, not indexed: its gradient is one stack instead of three zero-filled tensors.
  const std::vector<torch::Tensor> parts = qkv.permute({2, 0, 3, 1, 4}).unbind(0);
  const torch::Tensor &q = parts[0], &k = parts[1], &v = parts[2];  // [batch, heads, time, head width]
#if TORCH_VERSION_MAJOR >= 2
  const torch::Tensor mixed =
      at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, dropout, /*is_causal=*/true);
#else
  const torch::Tensor mixed = PlainAttention(q, k, v, dropout);
#endif
  return mixed.transpose(1, 2).contiguous();
}

}  // namespace atl
