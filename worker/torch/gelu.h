#ifndef ATOLL_WORKER_TORCH_GELU_H_
#define ATOLL_WORKER_TORCH_GELU_H_

#include "worker/torch/libtorch.h"

namespace atl {

/// GELU in its tanh form, differentiable: our own kernels for contiguous float32 on the CPU, LibTorch's
/// elsewhere. Throws what LibTorch throws.
torch::Tensor Gelu(const torch::Tensor& x);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_GELU_H_
