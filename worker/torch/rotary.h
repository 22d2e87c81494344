#ifndef ATOLL_WORKER_TORCH_ROTARY_H_
#define ATOLL_WORKER_TORCH_ROTARY_H_

#include <cstdint>

#include "core/llama_options.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// theta^(-2i / head_dim) for i below head_dim / 2, scaled as Llama 3.1 scales them (RopeScaling). float32 on
/// the CPU, computed operation by operation as Hugging Face's models compute them.
torch::Tensor RotaryFrequencies(int64_t head_dim, double theta, const RopeScaling& scaling);

/// Rotary positions (Su et al., arXiv 2104.09864) by halves: value i of a head turns together with value i +
/// head_dim / 2, as in Hugging Face's models. (The paper and GGUF turn neighbours.) Immutable and
/// thread-safe. Methods throw what LibTorch throws.
class RotaryPositions {
 public:
  /// Keeps context * head_dim values on the device.
  RotaryPositions(const torch::Tensor& frequencies, int64_t context, const torch::Device& device);

  /// x: [batch, time, heads, head_dim], of the positions from `first` on; first + time <= context. Returns
  /// float32 of the same shape. Differentiable.
  torch::Tensor Rotate(const torch::Tensor& x, int64_t first = 0) const;

  /// The same, where each token has a position of its own. positions: int64 [batch, time], below context.
  torch::Tensor Rotate(const torch::Tensor& x, const torch::Tensor& positions) const;

 private:
  torch::Tensor cosines_;  // [context, 1, head_dim / 2]
  torch::Tensor sines_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_ROTARY_H_
