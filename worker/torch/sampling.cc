#include "worker/torch/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"

namespace atl {

TokenSampler::TokenSampler(double temperature, uint32_t top_k, uint64_t seed)
    : temperature_(temperature), top_k_(top_k), random_(seed) {}

absl::StatusOr<TokenId> TokenSampler::Draw(std::span<const float> logits) {
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    return absl::FailedPreconditionError("the model's output is not finite: the model has diverged");
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature_ <= 0) return static_cast<TokenId>(best - logits.begin());
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0u);
  size_t kept = logits.size();
  if (top_k_ > 0 && top_k_ < kept) {
    kept = top_k_;
    std::partial_sort(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(kept), order_.end(),
                      [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  }
  weights_.resize(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    weights_[i] = std::exp((static_cast<double>(logits[order_[i]]) - *best) / temperature_);
    total += weights_[i];
  }
  // 53 random bits as a number in [0, 1): the same on every standard library, as std::discrete_distribution
  // is not.
  double remaining = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
  for (size_t i = 0; i < kept; ++i) {
    remaining -= weights_[i];
    if (remaining < 0) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace atl
