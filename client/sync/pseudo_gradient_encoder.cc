#include "client/sync/pseudo_gradient_encoder.h"

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/sync/host_fragment_encoder.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {

namespace {

std::unique_ptr<FragmentEncoder> OnHost(const RunOptions& run, uint64_t elements,
                                        std::shared_ptr<GaussianSource> noise) {
  EncoderOptions options = EncoderOptions::Of(run, elements);
  options.noise = std::move(noise);
  return std::make_unique<HostFragmentEncoder>(options);
}

}  // namespace

PushHeader ClaimsOf(const FragmentBase& base, const InnerRound& round, std::optional<uint32_t> partition,
                    uint64_t samples_consumed) {
  return {.key = {.fragment = base.layout.id, .base = *base.version, .sequence = 0},
          .tokens = round.tokens,
          .steps = round.steps,
          .partition = partition,
          .samples_consumed = samples_consumed,
          .mean_loss = round.mean_loss()};
}

PseudoGradientEncoder::PseudoGradientEncoder(const RunOptions& run, const FragmentLayout& layout,
                                             Replica& replica)
    : PseudoGradientEncoder(run, layout.elements, replica.MakeEncoder(EncoderOptions::Of(run, layout))) {}

PseudoGradientEncoder::PseudoGradientEncoder(const RunOptions& run, uint64_t elements,
                                             std::shared_ptr<GaussianSource> noise)
    : PseudoGradientEncoder(run, elements, OnHost(run, elements, std::move(noise))) {}

PseudoGradientEncoder::PseudoGradientEncoder(const RunOptions& run, uint64_t elements)
    : PseudoGradientEncoder(run, elements,
                            std::make_unique<HostFragmentEncoder>(EncoderOptions::Of(run, elements))) {}

PseudoGradientEncoder::PseudoGradientEncoder(const RunOptions& run, uint64_t elements,
                                             std::unique_ptr<FragmentEncoder> arithmetic)
    : codec_(run.push_codec),
      zstd_(run.zstd),
      reset_every_(run.error_feedback_reset),
      noisy_(run.privacy.noisy()),
      arithmetic_(std::move(arithmetic)),
      payload_(CodecFor(run.push_codec).EncodedSize(elements)) {}

absl::Status PseudoGradientEncoder::EncodeRound(const FragmentBase& base, const InnerRound& round,
                                                Replica& replica, std::optional<uint32_t> partition,
                                                std::vector<float>& scratch) {
  scratch.resize(base.layout.elements);
  ATOLL_RETURN_IF_ERROR(Measure(base, replica, scratch));
  return Encode(ClaimsOf(base, round, partition, replica.samples_consumed()), scratch);
}

absl::Status PseudoGradientEncoder::Measure(const FragmentBase& base, Replica& replica,
                                            std::span<float> delta) {
  // Here and not in Encode: a device begins to encode in Measure. The last offer is kept with the residual,
  // so this holds across restarts too.
  if (reset_every_ > 0 && header_.key.base.value() / reset_every_ != base.version->value() / reset_every_) {
    arithmetic_->Reset();
  }
  return arithmetic_->Measure(base.layout, base.values, replica, delta);
}

absl::Status PseudoGradientEncoder::Encode(const PushHeader& claims, std::span<float> delta) {
  const absl::Status encoded = arithmetic_->Encode(delta, payload_);
  if (!encoded.ok()) {
    // A residual that has grown out of the codec's range would refuse every later round as well.
    arithmetic_->Reset();
    return encoded;
  }
  header_ = claims;
  if (noisy_) header_.mean_loss = 0;  // a function of the data, without noise
  header_.codec = codec_;
  header_.zstd = zstd_;
  header_.payload_bytes = payload_.size();
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
    arithmetic_->Reset();
  } else {
    ATOLL_RETURN_IF_ERROR(arithmetic_->Restore(kept.residual));
  }
  payload_ = kept.payload;
  header_ = kept.header;
  return absl::OkStatus();
}

void PseudoGradientEncoder::Recode(PushRecord& kept) const {
  const size_t elements = arithmetic_->residual().size();
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
  kept.header.payload_bytes = kept.payload.size();
}

void PseudoGradientEncoder::Settle(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCounted:
      done_ = header_.key.base;
      break;
    case Verdict::kLost:
      arithmetic_->GiveBack(payload_);
      done_ = header_.key.base;
      break;
    case Verdict::kNotFinite:
      arithmetic_->Reset();
      break;
  }
}

std::vector<PseudoGradientEncoder> MakeEncoders(const RunOptions& run,
                                                const std::vector<FragmentLayout>& layout, Replica& replica) {
  std::vector<PseudoGradientEncoder> encoders;
  encoders.reserve(layout.size());
  for (const FragmentLayout& fragment : layout) encoders.emplace_back(run, fragment, replica);
  return encoders;
}

void MarkAccepted(const std::vector<PushKey>& accepted, std::span<const FragmentBase> bases,
                  std::span<PseudoGradientEncoder> encoders) {
  for (const PushKey& key : accepted) {
    const size_t i = key.fragment.value();
    if (i < encoders.size() && bases[i].version == key.base) encoders[i].MarkDone(key.base);
  }
}

}  // namespace atl
