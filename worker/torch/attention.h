#ifndef ATOLL_WORKER_TORCH_ATTENTION_H_
#define ATOLL_WORKER_TORCH_ATTENTION_H_

#include <cstddef>

#include "worker/torch/key_value_cache.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// Causal multi-head attention, softmax(q k^T / sqrt(head width)) v with position t seeing 0..t.
/// qkv: [batch, time, 3, heads, head width], contiguous, float32 or bfloat16. Returns [batch, time, heads,
/// head width], contiguous, of the same type. Differentiable. Throws what LibTorch throws.
torch::Tensor CausalAttention(const torch::Tensor& qkv, double dropout);

/// The same with grouped heads (Ainslie et al., arXiv 2305.13245). q: [batch, time, heads, head width]; k, v:
/// [batch, time, groups, head width], of q's type. `groups` divides heads; a head of keys and values serves
/// heads / groups heads of queries that follow each other.
torch::Tensor CausalAttention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              double dropout);

/// The same, where a position sees what `penalties` says (DocumentLayout::penalties).
torch::Tensor CausalAttention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              double dropout, const torch::Tensor& penalties);

/// The same for positions that follow those of the cache, to which it adds them (KeyValueCache::Extend): any
/// number of positions while the cache is empty, and one at a time after that.
torch::Tensor CausalAttention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              KeyValueCache& cache, size_t layer);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_ATTENTION_H_
