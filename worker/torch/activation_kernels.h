#ifndef ATOLL_WORKER_TORCH_ACTIVATION_KERNELS_H_
#define ATOLL_WORKER_TORCH_ACTIVATION_KERNELS_H_

#include <cstddef>

// GELU in its tanh form (Hendrycks & Gimpel, arXiv 1606.08415) on host memory, vectorised. Uses 0.5*(1 +
// tanh(u)) = 1/(1 + exp(-2u)), which needs one exponential and does not cancel where tanh(u) is near -1.
// Error: a few units in the last place. No LibTorch.

namespace atl {

/// out[i] = x[i] * sigmoid(2u), u = sqrt(2/pi) * (x + 0.044715 x^3).
void GeluForward(size_t elements, const float* x, float* out);

/// grad_x[i] = grad_out[i] * d gelu / d x at x[i].
void GeluBackward(size_t elements, const float* x, const float* grad_out, float* grad_x);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_ACTIVATION_KERNELS_H_
