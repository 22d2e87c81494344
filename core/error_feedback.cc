#include "core/error_feedback.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/instruction_set.h"
#include "core/float_bits.h"
#include "core/fragment_plan.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

/// sum[i] = kept * residual[i] + delta[i]; whether all are finite.
struct AddResidual {
  ATOLL_KERNEL bool Run(float kept, const float* __restrict residual, const float* __restrict delta, size_t n,
                        float* __restrict sum) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; ++i) {
      sum[i] = kept * residual[i] + delta[i];
      bad |= static_cast<uint32_t>(!IsFiniteBits(sum[i]));
    }
    return bad == 0;
  }
};

struct Carry {
  ATOLL_KERNEL void Run(const float* __restrict whole, const float* __restrict sent, size_t n,
                        float* __restrict residual) {
    for (size_t i = 0; i < n; ++i) residual[i] = whole[i] - sent[i];
  }
};

struct MoveAverage {
  ATOLL_KERNEL void Run(float beta, float rest, const float* __restrict whole, const float* __restrict sent,
                        size_t n, float* __restrict residual) {
    for (size_t i = 0; i < n; ++i) residual[i] = beta * residual[i] + rest * (whole[i] - sent[i]);
  }
};

}  // namespace

ErrorFeedback::ErrorFeedback(const Codec& codec, double beta, uint64_t elements, ErrorFeedbackForm form,
                             std::vector<ElementRange> averaged)
    : codec_(codec),
      beta_(static_cast<float>(beta)),
      form_(form),
      averaged_(std::move(averaged)),
      residual_(elements) {}

absl::Status ErrorFeedback::Encode(std::span<const float> delta, std::span<std::byte> payload) {
  const uint64_t elements = residual_.size();
  std::vector<float> whole(std::min(kPayloadPiece, elements));
  std::vector<float> sent(whole.size());
  // Checked before anything changes: a residual that took in a NaN would poison every push after it.
  for (uint64_t first = 0; first < elements; first += kPayloadPiece) {
    const uint64_t n = std::min(kPayloadPiece, elements - first);
    if (RunKernel<AddResidual>(kept(), std::as_const(residual_).data() + first, delta.data() + first, n,
                               whole.data())) {
      continue;
    }
    const uint64_t bad = *FirstNonFinite(std::span(whole).first(n));
    return absl::InvalidArgumentError(absl::StrFormat(
        "element %d of the pseudo-gradient is not finite (%g, residual %g); drop the round and pull",
        first + bad, delta[first + bad], residual_[first + bad]));
  }
  for (uint64_t first = 0; first < elements; first += kPayloadPiece) {
    const uint64_t n = std::min(kPayloadPiece, elements - first);
    float* const residual = residual_.data() + first;
    RunKernel<AddResidual>(kept(), static_cast<const float*>(residual), delta.data() + first, n,
                           whole.data());
    codec_.Encode(std::span(whole).first(n),
                  payload.subspan(codec_.EncodedSize(first), codec_.EncodedSize(n)));
    codec_.DecodeRange(payload, elements, first, std::span(sent).first(n));
    if (form_ == ErrorFeedbackForm::kCarry) {
      RunKernel<Carry>(std::as_const(whole).data(), std::as_const(sent).data(), n, residual);
    } else {
      RunKernel<MoveAverage>(beta_, 1.0f - beta_, std::as_const(whole).data(), std::as_const(sent).data(), n,
                             residual);
    }
  }
  ClearAveraged();
  return absl::OkStatus();
}

void ErrorFeedback::GiveBack(std::span<const std::byte> payload) {
  const std::span<float> residual(residual_);
  for (uint64_t first = 0; first < residual.size(); first += kChunkAlignment) {
    const uint64_t n = std::min<uint64_t>(kChunkAlignment, residual.size() - first);
    codec_.AccumulateRange(payload, residual.size(), first, 1.0f, residual.subspan(first, n));
  }
  ClearAveraged();
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
  ClearAveraged();  // what a lost push held may be in it
  return absl::OkStatus();
}

void ErrorFeedback::Reset() { std::fill(residual_.begin(), residual_.end(), 0.0f); }

void ErrorFeedback::ClearAveraged() {
  for (const ElementRange& range : averaged_) {
    std::ranges::fill(std::span(residual_).subspan(range.begin, range.end - range.begin), 0.0f);
  }
}

}  // namespace atl
