#ifndef ATOLL_WORKER_TORCH_UPDATE_KERNELS_H_
#define ATOLL_WORKER_TORCH_UPDATE_KERNELS_H_

#include <cstddef>

// Optimizer arithmetic on host memory, one pass over each range. Element-wise float32 in a fixed order of
// operations, never fused, so the bits do not depend on the instruction set or on how a vector is cut into
// ranges. No LibTorch.

namespace atl {

/// Constants of one Adam step, as torch.optim.AdamW computes them.
struct AdamStep {
  float gradient_scale = 1;  // clipping
  float beta1 = 0, beta2 = 0;
  float one_minus_beta1 = 0, one_minus_beta2 = 0;
  float step_size = 0;                // learning rate / (1 - beta1^t)
  float inverse_root_correction = 0;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
  float keep = 1;  // 1 - learning rate * weight decay; 1: no decay
};

/// theta *= keep; m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g; theta -= step_size * m /
/// (sqrt(v)/sqrt(1 - beta2^t) + epsilon), with g = gradient_scale * gradient (Loshchilov & Hutter, arXiv
/// 1711.05101). Zeroes `gradient`.
void AdamRange(const AdamStep& step, size_t elements, float* theta, float* gradient, float* m, float* v);

/// b = momentum*b + g; theta -= learning_rate * b, with g = gradient_scale * gradient. Zeroes `gradient`.
void SgdRange(float gradient_scale, float momentum, float learning_rate, size_t elements, float* theta,
              float* gradient, float* buffer);

/// Sum of squares in float64, over blocks of fixed size in their order: the same bits however many threads
/// call it on disjoint ranges whose boundaries are multiples of kSumBlock, when their results are added in
/// order.
inline constexpr size_t kSumBlock = 4096;
double SumOfSquares(size_t elements, const float* values);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_UPDATE_KERNELS_H_
