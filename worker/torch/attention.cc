#include "worker/torch/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "worker/torch/torch_features.h"

namespace atl {
namespace {

/// Which keys a query sees.
enum class Sees { kEarlier, kAll };

/// `penalties`: DocumentLayout::penalties in the type of the queries, or undefined: as `sees` says.
struct Mask {
  Sees sees = Sees::kEarlier;
  torch::Tensor penalties = {};
};

// Where the library has no fused kernel.
[[maybe_unused]] torch::Tensor PlainAttention(const torch::Tensor& q, const torch::Tensor& k,
                                              const torch::Tensor& v, double dropout, const Mask& mask) {
  const int64_t time = q.size(2);
  const int64_t batch = k.size(0) * k.size(1);
  const int64_t rows = q.size(1) / k.size(1) * time;  // of all heads that read the same keys
  const auto flat = [&](const torch::Tensor& t, int64_t length) {
    return t.reshape({batch, length, t.size(3)});
  };
  torch::Tensor hidden = torch::zeros({1, 1}, q.options());
  if (mask.sees == Sees::kEarlier && !mask.penalties.defined()) {
    hidden = torch::full({time, time}, -std::numeric_limits<float>::infinity(), q.options()).triu_(1);
    if (rows > time) hidden = hidden.repeat({rows / time, 1});
  }
  // baddbmm adds the mask while it multiplies: one pass less over [batch, heads, time, time].
  torch::Tensor weights =
      torch::baddbmm(hidden, flat(q, rows), flat(k, k.size(2)).transpose(1, 2), /*beta=*/1,
                     /*alpha=*/1.0 / std::sqrt(static_cast<double>(q.size(3))));
  // All heads of a row have the same penalties.
  if (mask.penalties.defined()) weights.view({q.size(0), q.size(1), time, time}).add_(mask.penalties);
  weights = torch::softmax(weights, -1);
  if (dropout > 0) weights = torch::dropout(weights, dropout, /*train=*/true);
  return torch::bmm(weights, flat(v, v.size(2))).view(q.sizes());
}

/// One head of keys or values for each head of queries: the fused kernels of some devices know no groups.
[[maybe_unused]] torch::Tensor Ungrouped(const torch::Tensor& x, int64_t heads) {
  const int64_t groups = x.size(1);
  if (groups == heads) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), groups, heads / groups, x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

/// q: [batch, heads, time, head width]; k, v: [batch, groups, positions, head width].
torch::Tensor Attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, double dropout,
                     const Mask& mask) {
#if ATOLL_TORCH_2
  const int64_t heads = q.size(1);
  const torch::Tensor mixed =
      mask.penalties.defined()
          ? at::scaled_dot_product_attention(q, Ungrouped(k, heads), Ungrouped(v, heads), mask.penalties,
                                             dropout)
          : at::scaled_dot_product_attention(q, Ungrouped(k, heads), Ungrouped(v, heads), /*attn_mask=*/{},
                                             dropout, /*is_causal=*/mask.sees == Sees::kEarlier);
#else
  const torch::Tensor mixed = PlainAttention(q, k, v, dropout, mask);
#endif
  return mixed.transpose(1, 2).contiguous();
}

}  // namespace

torch::Tensor CausalAttention(const torch::Tensor& qkv, double dropout) {
  // Unbound, not indexed: its gradient is one stack, laid out as qkv, instead of three zero-filled tensors.
  const std::vector<torch::Tensor> parts = qkv.unbind(2);
  return CausalAttention(parts[0], parts[1], parts[2], dropout);
}

torch::Tensor CausalAttention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              double dropout) {
  return Attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), dropout, {});
}

torch::Tensor CausalAttention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              double dropout, const torch::Tensor& penalties) {
  return Attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), dropout,
                {.penalties = penalties.to(q.scalar_type())});
}

torch::Tensor CausalAttention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              KeyValueCache& cache, size_t layer) {
  // The newest position sees every key, and the first positions see none but their own.
  const Sees sees = cache.length() == 0 ? Sees::kEarlier : Sees::kAll;
  const KeyValueCache::Entry all = cache.Extend(layer, k.transpose(1, 2), v.transpose(1, 2));
  return Attend(q.transpose(1, 2), all.keys, all.values, /*dropout=*/0, {.sees = sees});
}

}  // namespace atl
