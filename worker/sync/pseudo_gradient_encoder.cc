#include "worker/sync/pseudo_gradient_encoder.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {

PseudoGradientEncoder::PseudoGradientEncoder(const RunOptions& run, uint64_t elements,
                                             std::shared_ptr<GaussianSource> noise)
    : codec_(run.push_codec),
      zstd_(run.zstd),
      reset_every_(run.error_feedback_reset),
      privacy_(run.privacy),
      clip_norm_(FragmentClipNorm(run.privacy, run.sync.fragments)),
      noise_(std::move(noise)),
      // Carried with beta 0 is not carried.
      feedback_(CodecFor(run.push_codec), run.error_feedback ? run.error_feedback_beta : 0, elements,
                run.error_feedback ? run.error_feedback_form : ErrorFeedbackForm::kCarry),
      payload_(CodecFor(run.push_codec).EncodedSize(elements)) {}

absl::Status PseudoGradientEncoder::EncodeRound(const FragmentBase& base, const InnerRound& round,
                                                Replica& replica, std::optional<uint32_t> partition,
                                                std::vector<float>& scratch) {
  scratch.resize(base.layout.elements);
  ATOLL_RETURN_IF_ERROR(replica.ReadFragment(base.layout, scratch));
  for (size_t i = 0; i < scratch.size(); ++i) scratch[i] = base.values[i] - scratch[i];
  return Encode({.key = {.fragment = base.layout.id, .base = *base.version, .sequence = 0},
                 .tokens = round.tokens,
                 .steps = round.steps,
                 .partition = partition,
                 .samples_consumed = replica.samples_consumed(),
                 .mean_loss = round.mean_loss()},
                scratch);
}

absl::Status PseudoGradientEncoder::Encode(const PushHeader& claims, std::span<float> delta) {
  if (privacy_.enabled()) {
    // The noise is in proportion to the bound of the whole round, whatever share of it a fragment has.
    Privatise(clip_norm_, privacy_.noise_multiplier * privacy_.clip_norm, delta, noise_.get());
  }
  // The last offer is kept with the residual, so this holds across restarts too.
  if (reset_every_ > 0 && header_.key.base.value() / reset_every_ != claims.key.base.value() / reset_every_) {
    feedback_.Reset();
  }
  const absl::Status encoded = feedback_.Encode(delta, payload_);
  if (!encoded.ok()) {
    // A residual that has grown out of the codec's range would refuse every later round as well.
    feedback_.Reset();
    return encoded;
  }
  header_ = claims;
  if (privacy_.noisy()) header_.mean_loss = 0;  // a function of the data, without noise
  header_.codec = codec_;
  header_.zstd = zstd_;
  header_.payload_crc32c = Crc32c(payload_);
  return absl::OkStatus();
}

absl::Status PseudoGradientEncoder::Restore(PushRecord& kept) {
  if (kept.header.codec != codec_ && kept.verdict.has_value()) Recode(kept);
  if (kept.header.codec != codec_ || kept.payload.size() != payload_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a kept contribution of %d bytes in codec %s does not fit this run: %d bytes in %s",
                        kept.payload.size(), std::string(CodecName(kept.header.codec)), payload_.size(),
                        std::string(CodecName(codec_))));
  }
  if (kept.residual.empty()) {
    feedback_.Reset();
  } else {
    ATOLL_RETURN_IF_ERROR(feedback_.Restore(kept.residual));
  }
  payload_ = kept.payload;
  header_ = kept.header;
  return absl::OkStatus();
}

void PseudoGradientEncoder::Recode(PushRecord& kept) const {
  const size_t elements = feedback_.residual().size();
  const Codec& codec = CodecFor(kept.header.codec);
  if (kept.payload.size() != codec.EncodedSize(elements)) return;
  kept.residual.resize(elements);
  if (kept.verdict == Verdict::kLost) {
    std::vector<float> content(elements);
    codec.DecodeRange(kept.payload, elements, 0, content);
    for (size_t i = 0; i < elements; ++i) kept.residual[i] += content[i];
    kept.verdict = Verdict::kCounted;
  }
  kept.header.codec = codec_;
  kept.payload.assign(payload_.size(), std::byte{0});
}

void PseudoGradientEncoder::Settle(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCounted:
      done_ = header_.key.base;
      break;
    case Verdict::kLost:
      feedback_.GiveBack(payload_);
      done_ = header_.key.base;
      break;
    case Verdict::kNotFinite:
      feedback_.Reset();
      break;
  }
}

}  // namespace atl
