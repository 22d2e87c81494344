#include "worker/torch/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"

namespace atl {

TokenSampler::TokenSampler(const SamplingOptions& options) : options_(options), random_(options.seed) {}

size_t TokenSampler::Keep(std::span<const float> logits) {
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0u);
  const bool cut = options_.top_k > 0 && options_.top_k < logits.size();
  const size_t kept = cut ? options_.top_k : logits.size();
  if (!cut && options_.top_p >= 1) return kept;
  std::partial_sort(
      order_.begin(), order_.begin() + static_cast<ptrdiff_t>(kept), order_.end(),
      [&](uint32_t a, uint32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  return kept;
}

absl::StatusOr<TokenId> TokenSampler::Draw(std::span<const float> logits) {
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    return absl::FailedPreconditionError("the model's output is not finite: the model has diverged");
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  if (options_.temperature <= 0) return static_cast<TokenId>(best - logits.begin());
  size_t kept = Keep(logits);
  weights_.resize(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    weights_[i] = std::exp((static_cast<double>(logits[order_[i]]) - *best) / options_.temperature);
    total += weights_[i];
  }
  if (options_.top_p < 1) {
    const double share = options_.top_p * total;
    total = weights_[0];
    size_t enough = 1;
    while (enough < kept && total < share) total += weights_[enough++];
    kept = enough;
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
