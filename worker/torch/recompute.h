#ifndef ATOLL_WORKER_TORCH_RECOMPUTE_H_
#define ATOLL_WORKER_TORCH_RECOMPUTE_H_

#include <functional>

#include "worker/torch/libtorch.h"

namespace atl {

/// A part of a model. Reads parameters besides its argument, and outlives the backward pass.
using ModelBlock = std::function<torch::Tensor(const torch::Tensor& x)>;

/// Whether a block draws from LibTorch's default generator.
enum class Draws { kNothing, kRandomNumbers };

/// block(x), of which only x is kept: the backward pass computes the block again (Chen et al., arXiv
/// 1604.06174), with the same random numbers. Gradients of the parameters that the block reads are added to
/// them as always. x needs a gradient. Throws what LibTorch throws.
torch::Tensor Recomputed(const ModelBlock& block, const torch::Tensor& x, Draws draws);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_RECOMPUTE_H_
