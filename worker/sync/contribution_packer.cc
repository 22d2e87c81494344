#include "worker/sync/contribution_packer.h"

#include "common/crc32c.h"
#include "common/status.h"
#include "core/codec.h"

namespace atoll {

ContributionPacker::ContributionPacker(const RunOptions& run, uint64_t elements)
    : codec_(run.push_codec),
      feedback_(CodecFor(run.push_codec), run.error_feedback ? run.error_feedback_beta : 0, elements),
      payload_(CodecFor(run.push_codec).EncodedSize(elements)) {}

absl::Status ContributionPacker::Pack(const FragmentBase& base, const InnerRound& round, Replica& replica,
                                      std::vector<float>& scratch) {
  scratch.resize(base.layout.elements);
  ATOLL_RETURN_IF_ERROR(replica.ReadFragment(base.layout, scratch));
  for (size_t i = 0; i < scratch.size(); ++i) scratch[i] = base.values[i] - scratch[i];
  const absl::Status encoded = feedback_.Encode(scratch, payload_);
  if (!encoded.ok()) {
    // A residual that has grown out of the codec's range would refuse every later round as well.
    feedback_.Reset();
    return encoded;
  }
  offer_ = {.key = {.fragment = base.layout.id, .base = *base.version, .sequence = 0},
            .codec = codec_,
            .payload_crc32c = Crc32c(payload_),
            .tokens = round.tokens,
            .steps = round.steps,
            .samples_consumed = replica.samples_consumed(),
            .mean_loss = round.mean_loss()};
  return absl::OkStatus();
}

void ContributionPacker::Settle(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCounted:
      done_ = offer_.key.base;
      break;
    case Verdict::kLost:
      feedback_.GiveBack(payload_);
      done_ = offer_.key.base;
      break;
    case Verdict::kNotFinite:
      feedback_.Reset();
      break;
  }
}

}  // namespace atoll
