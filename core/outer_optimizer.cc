#include "core/outer_optimizer.h"

#include <cmath>

#include "common/instruction_set.h"
#include "core/float_bits.h"

namespace atl {
namespace {

// Each step looks at what it writes while it is in a register: whether all of it is finite.

ATOLL_INLINE uint32_t NotFinite(float value) { return static_cast<uint32_t>(!IsFiniteBits(value)); }

// The loops carry no dependence between elements even when theta_out is theta_in, which `ivdep` tells the
// vectoriser.

struct NesterovStep {
  ATOLL_KERNEL bool Run(float eta, float mu, size_t n, const float* d, const float* theta_in,
                        float* theta_out, float* v) {
    uint32_t bad = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const float velocity = mu * v[i] + d[i];
      const float theta = theta_in[i] - eta * (d[i] + mu * velocity);
      v[i] = velocity;
      theta_out[i] = theta;
      bad |= NotFinite(velocity) | NotFinite(theta);
    }
    return bad == 0;
  }
};

struct SgdStep {
  ATOLL_KERNEL bool Run(float eta, size_t n, const float* d, const float* theta_in, float* theta_out) {
    uint32_t bad = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const float theta = theta_in[i] - eta * d[i];
      theta_out[i] = theta;
      bad |= NotFinite(theta);
    }
    return bad == 0;
  }
};

struct AdamNumbers {
  float step_size;
  float root_correction;
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float epsilon;
};

struct AdamStep {
  ATOLL_KERNEL bool Run(AdamNumbers s, size_t n, const float* d, const float* theta_in, float* theta_out,
                        float* m, float* v) {
    uint32_t bad = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const float first = s.beta1 * m[i] + s.rest1 * d[i];
      const float second = s.beta2 * v[i] + (s.rest2 * d[i]) * d[i];
      const float theta =
          theta_in[i] - s.step_size * (first / (std::sqrt(second) / s.root_correction + s.epsilon));
      m[i] = first;
      v[i] = second;
      theta_out[i] = theta;
      bad |= NotFinite(first) | NotFinite(second) | NotFinite(theta);
    }
    return bad == 0;
  }
};

struct DelayedNumbers {
  float eta;
  float mu;
  float share;
  float pull;
};

template <bool kEndsWindow>
struct DelayedNesterovStep {
  ATOLL_KERNEL bool Run(DelayedNumbers s, size_t n, const float* d, const float* theta_in, float* theta_out,
                        float* m, float* sum) {
    uint32_t bad = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const float gathered = sum[i] + d[i];
      const float momentum = kEndsWindow ? s.mu * m[i] + s.share * gathered : m[i];
      const float rest = kEndsWindow ? 0.0f : gathered;
      const float theta = theta_in[i] - s.eta * (s.share * d[i] + s.pull * momentum);
      m[i] = momentum;
      sum[i] = rest;
      theta_out[i] = theta;
      bad |= NotFinite(momentum) | NotFinite(rest) | NotFinite(theta);
    }
    return bad == 0;
  }
};

AdamNumbers AdamNumbersOf(const OuterOptions& options, uint64_t t) {
  const auto steps = static_cast<double>(t);
  return {.step_size = static_cast<float>(options.learning_rate / (1.0 - std::pow(options.beta1, steps))),
          .root_correction = static_cast<float>(std::sqrt(1.0 - std::pow(options.beta2, steps))),
          .beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .rest1 = static_cast<float>(1.0 - options.beta1),
          .rest2 = static_cast<float>(1.0 - options.beta2),
          .epsilon = static_cast<float>(options.epsilon)};
}

/// N of delayed_nesterov.
uint32_t WindowOf(const OuterOptions& options) { return options.delay == 0 ? 1 : options.delay; }

bool DelayedNesterov(const OuterOptions& options, uint64_t t, size_t n, const float* d, const float* theta_in,
                     float* theta_out, float* m, float* sum) {
  const uint32_t window = WindowOf(options);
  const bool ends_window = t % window == 0;
  const auto count = static_cast<double>(window);
  const double rest = ends_window ? 1.0 - options.spread * count + options.spread : options.spread;
  const DelayedNumbers numbers = {.eta = static_cast<float>(options.learning_rate),
                                  .mu = static_cast<float>(options.momentum),
                                  .share = static_cast<float>(1.0 / count),
                                  .pull = static_cast<float>(rest * options.momentum)};
  if (ends_window) {
    return RunKernel<DelayedNesterovStep<true>>(numbers, n, d, theta_in, theta_out, m, sum);
  }
  return RunKernel<DelayedNesterovStep<false>>(numbers, n, d, theta_in, theta_out, m, sum);
}

}  // namespace

std::span<const std::string_view> OuterStateNames(OuterOptimizerKind kind) {
  static constexpr std::string_view kNesterov[] = {"momentum"};
  static constexpr std::string_view kAdam[] = {"first_moment", "second_moment"};
  static constexpr std::string_view kDelayed[] = {"momentum", "accumulated"};
  switch (kind) {
    case OuterOptimizerKind::kNesterov:
      return kNesterov;
    case OuterOptimizerKind::kSgd:
      return {};
    case OuterOptimizerKind::kAdam:
      return kAdam;
    case OuterOptimizerKind::kDelayedNesterov:
      return kDelayed;
  }
  return {};
}

size_t OuterStateVectors(OuterOptimizerKind kind) { return OuterStateNames(kind).size(); }

bool OuterStepRange(const OuterOptions& options, uint64_t step, std::span<const float> mean,
                    std::span<const float> theta_in, std::span<float> theta_out,
                    std::span<const std::span<float>> state) {
  const size_t n = theta_out.size();
  const auto eta = static_cast<float>(options.learning_rate);
  switch (options.optimizer) {
    case OuterOptimizerKind::kNesterov:
      return RunKernel<NesterovStep>(eta, static_cast<float>(options.momentum), n, mean.data(),
                                     theta_in.data(), theta_out.data(), state[0].data());
    case OuterOptimizerKind::kSgd:
      return RunKernel<SgdStep>(eta, n, mean.data(), theta_in.data(), theta_out.data());
    case OuterOptimizerKind::kAdam:
      return RunKernel<AdamStep>(AdamNumbersOf(options, step), n, mean.data(), theta_in.data(),
                                 theta_out.data(), state[0].data(), state[1].data());
    case OuterOptimizerKind::kDelayedNesterov:
      return DelayedNesterov(options, step, n, mean.data(), theta_in.data(), theta_out.data(),
                             state[0].data(), state[1].data());
  }
  return false;
}

bool AverageRange(const OuterOptions& options, std::span<const float> mean, std::span<const float> theta_in,
                  std::span<float> theta_out) {
  const bool delayed = options.optimizer == OuterOptimizerKind::kDelayedNesterov;
  const auto share = static_cast<float>(delayed ? 1.0 / static_cast<double>(WindowOf(options)) : 1.0);
  return RunKernel<SgdStep>(share, theta_out.size(), mean.data(), theta_in.data(), theta_out.data());
}

}  // namespace atl
