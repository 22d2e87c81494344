#include "core/error_feedback.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "core/float_bits.h"
#include "core/fragment_plan.h"
#include "core/payload_stats.h"

namespace atoll {

ErrorFeedback::ErrorFeedback(const Codec& codec, double beta, uint64_t elements)
    : codec_(codec), beta_(static_cast<float>(beta)), residual_(elements) {}

absl::Status ErrorFeedback::Encode(std::span<const float> delta, std::span<std::byte> payload) {
  // Checked before anything changes: a residual that took in a NaN would poison every push after it.
  for (size_t i = 0; i < delta.size(); ++i) {
    const float sum = beta_ * residual_[i] + delta[i];
    if (!IsFiniteBits(sum)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "element %d of the pseudo-gradient is not finite (%g, residual %g); drop the round and pull", i,
          delta[i], residual_[i]));
    }
  }
  for (size_t i = 0; i < delta.size(); ++i) residual_[i] = beta_ * residual_[i] + delta[i];
  codec_.Encode(residual_, payload);

  std::array<float, kChunkAlignment> sent;
  for (uint64_t first = 0; first < residual_.size(); first += kChunkAlignment) {
    const uint64_t n = std::min<uint64_t>(kChunkAlignment, residual_.size() - first);
    codec_.DecodeRange(payload, residual_.size(), first, std::span(sent).first(n));
    for (uint64_t i = 0; i < n; ++i) residual_[first + i] -= sent[i];
  }
  return absl::OkStatus();
}

void ErrorFeedback::GiveBack(std::span<const std::byte> payload) {
  const std::span<float> residual(residual_);
  for (uint64_t first = 0; first < residual.size(); first += kChunkAlignment) {
    const uint64_t n = std::min<uint64_t>(kChunkAlignment, residual.size() - first);
    codec_.AccumulateRange(payload, residual.size(), first, 1.0f, residual.subspan(first, n));
  }
}

absl::Status ErrorFeedback::Restore(std::span<const float> residual) {
  if (residual.size() != residual_.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the stored residual has %d values, the fragment has %d", residual.size(), residual_.size()));
  }
  if (const auto bad = FirstNonFinite(residual)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the stored residual's element %d is not finite (%g)", *bad, residual[*bad]));
  }
  std::copy(residual.begin(), residual.end(), residual_.begin());
  return absl::OkStatus();
}

void ErrorFeedback::Reset() { std::fill(residual_.begin(), residual_.end(), 0.0f); }

}  // namespace atoll
