#include "worker/torch/update_kernels.h"

#include "worker/torch/multiversion.h"

namespace atl {

ATOLL_MULTIVERSION
void AdamRange(const AdamStep& step, size_t elements, float* __restrict theta, float* __restrict gradient,
               float* __restrict m, float* __restrict v) {
  const AdamStep s = step;
  for (size_t i = 0; i < elements; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    const float mean = s.beta1 * m[i] + s.one_minus_beta1 * g;
    const float square = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
    const float denominator = __builtin_sqrtf(square) * s.inverse_root_correction + s.epsilon;
    theta[i] = theta[i] * s.keep - s.step_size * (mean / denominator);
    m[i] = mean;
    v[i] = square;
    gradient[i] = 0;
  }
}

ATOLL_MULTIVERSION
void SgdRange(float gradient_scale, float momentum, float learning_rate, size_t elements,
              float* __restrict theta, float* __restrict gradient, float* __restrict buffer) {
  for (size_t i = 0; i < elements; ++i) {
    const float velocity = momentum * buffer[i] + gradient[i] * gradient_scale;
    theta[i] -= learning_rate * velocity;
    buffer[i] = velocity;
    gradient[i] = 0;
  }
}

ATOLL_MULTIVERSION
double SumOfSquares(size_t elements, const float* values) {
  // Eight independent sums: the compiler may not reorder a single one. GCC's vector types become whatever
  // registers the target has, with the same bits.
  using Floats = float __attribute__((vector_size(8 * sizeof(float))));
  using Doubles = double __attribute__((vector_size(8 * sizeof(double))));
  double total = 0;
  for (size_t begin = 0; begin < elements; begin += kSumBlock) {
    const size_t end = begin + kSumBlock < elements ? begin + kSumBlock : elements;
    Doubles lanes = {};
    size_t i = begin;
    for (; i + 8 <= end; i += 8) {
      Floats single;
      __builtin_memcpy(&single, values + i, sizeof(single));
      const Doubles wide = __builtin_convertvector(single, Doubles);
      lanes += wide * wide;
    }
    double block = 0;
    for (int lane = 0; lane < 8; ++lane) block += lanes[lane];
    for (; i < end; ++i) block += static_cast<double>(values[i]) * values[i];
    total += block;
  }
  return total;
}

}  // namespace atl
