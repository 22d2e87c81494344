#include "core/outer_optimizer.h"

#include <cmath>

namespace atoll {
namespace {

// The loops carry no dependence between elements even when theta_out is theta_in, which `ivdep` tells the
// vectoriser.

void Nesterov(const OuterOptions& options, size_t n, const float* d, const float* theta_in, float* theta_out,
              float* v) {
  const auto eta = static_cast<float>(options.learning_rate);
  const auto mu = static_cast<float>(options.momentum);
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float velocity = mu * v[i] + d[i];
    v[i] = velocity;
    theta_out[i] = theta_in[i] - eta * (d[i] + mu * velocity);
  }
}

void Sgd(const OuterOptions& options, size_t n, const float* d, const float* theta_in, float* theta_out) {
  const auto eta = static_cast<float>(options.learning_rate);
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) theta_out[i] = theta_in[i] - eta * d[i];
}

void Adam(const OuterOptions& options, uint64_t t, size_t n, const float* d, const float* theta_in,
          float* theta_out, float* m, float* v) {
  const auto steps = static_cast<double>(t);
  const auto step_size = static_cast<float>(options.learning_rate / (1.0 - std::pow(options.beta1, steps)));
  const auto root_correction = static_cast<float>(std::sqrt(1.0 - std::pow(options.beta2, steps)));
  const auto beta1 = static_cast<float>(options.beta1);
  const auto beta2 = static_cast<float>(options.beta2);
  const auto rest1 = static_cast<float>(1.0 - options.beta1);
  const auto rest2 = static_cast<float>(1.0 - options.beta2);
  const auto epsilon = static_cast<float>(options.epsilon);
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float first = beta1 * m[i] + rest1 * d[i];
    const float second = beta2 * v[i] + (rest2 * d[i]) * d[i];
    m[i] = first;
    v[i] = second;
    theta_out[i] = theta_in[i] - step_size * (first / (std::sqrt(second) / root_correction + epsilon));
  }
}

void DelayedNesterov(const OuterOptions& options, uint64_t t, size_t n, const float* d, const float* theta_in,
                     float* theta_out, float* m, float* sum) {
  const uint32_t window = options.delay == 0 ? 1 : options.delay;
  const bool ends_window = t % window == 0;
  const auto count = static_cast<double>(window);
  const auto eta = static_cast<float>(options.learning_rate);
  const auto mu = static_cast<float>(options.momentum);
  const auto share = static_cast<float>(1.0 / count);
  const double rest = ends_window ? 1.0 - options.spread * count + options.spread : options.spread;
  const auto pull = static_cast<float>(rest * options.momentum);
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float gathered = sum[i] + d[i];
    const float momentum = ends_window ? mu * m[i] + share * gathered : m[i];
    m[i] = momentum;
    sum[i] = ends_window ? 0.0f : gathered;
    theta_out[i] = theta_in[i] - eta * (share * d[i] + pull * momentum);
  }
}

}  // namespace

size_t OuterStateVectors(OuterOptimizerKind kind) {
  switch (kind) {
    case OuterOptimizerKind::kNesterov:
      return 1;
    case OuterOptimizerKind::kSgd:
      return 0;
    case OuterOptimizerKind::kAdam:
    case OuterOptimizerKind::kDelayedNesterov:
      return 2;
  }
  return 0;
}

void OuterStepRange(const OuterOptions& options, uint64_t step, std::span<const float> mean,
                    std::span<const float> theta_in, std::span<float> theta_out,
                    std::span<const std::span<float>> state) {
  const size_t n = theta_out.size();
  switch (options.optimizer) {
    case OuterOptimizerKind::kNesterov:
      return Nesterov(options, n, mean.data(), theta_in.data(), theta_out.data(), state[0].data());
    case OuterOptimizerKind::kSgd:
      return Sgd(options, n, mean.data(), theta_in.data(), theta_out.data());
    case OuterOptimizerKind::kAdam:
      return Adam(options, step, n, mean.data(), theta_in.data(), theta_out.data(), state[0].data(),
                  state[1].data());
    case OuterOptimizerKind::kDelayedNesterov:
      return DelayedNesterov(options, step, n, mean.data(), theta_in.data(), theta_out.data(),
                             state[0].data(), state[1].data());
  }
}

}  // namespace atoll
