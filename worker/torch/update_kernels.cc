#include "worker/torch/update_kernels.h"

#include <algorithm>
#include <cmath>

#include "worker/torch/multiversion.h"

namespace atoll {

ATOLL_MULTIVERSION
void AdamRange(const AdamStep& step, size_t elements, float* __restrict theta, float* __restrict gradient,
               float* __restrict m, float* __restrict v) {
  const AdamStep s = step;
  for (size_t i = 0; i < elements; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    const float mean = s.beta1 * m[i] + s.one_minus_beta1 * g;
    const float square = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
    const float denominator = std::sqrt(square) * s.inverse_root_correction + s.epsilon;
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
  // Independent lanes, so that the compiler may vectorise without reordering a sum.
  constexpr size_t kLanes = 16;
  double total = 0;
  for (size_t begin = 0; begin < elements; begin += kSumBlock) {
    const size_t end = std::min(elements, begin + kSumBlock);
    double lanes[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const double value = values[i + lane];
        lanes[lane] += value * value;
      }
    }
    for (; i < end; ++i) lanes[0] += static_cast<double>(values[i]) * values[i];
    double block = 0;
    for (const double lane : lanes) block += lane;
    total += block;
  }
  return total;
}

}  // namespace atoll
