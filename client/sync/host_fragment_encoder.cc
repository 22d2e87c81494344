#include "client/sync/host_fragment_encoder.h"

#include "client/sync/replica.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/payload_gaps.h"

namespace atl {

HostFragmentEncoder::HostFragmentEncoder(const EncoderOptions& options)
    : privacy_(options.privacy),
      clip_norm_(options.clip_norm),
      noise_(options.noise),
      feedback_(CodecFor(options.codec), options.beta, options.elements, options.form, options.averaged) {}

absl::Status HostFragmentEncoder::Measure(const FragmentLayout& fragment, std::span<const float> base,
                                          Replica& replica, std::span<float> room) {
  ATOLL_RETURN_IF_ERROR(replica.ReadFragment(fragment, room));
  for (size_t i = 0; i < room.size(); ++i) room[i] = base[i] - room[i];
  if (privacy_.enabled()) layout_ = fragment;
  return absl::OkStatus();
}

absl::Status HostFragmentEncoder::Encode(std::span<float> room, std::span<std::byte> payload) {
  if (privacy_.enabled()) {
    // The base may have noise between the tensors, from workers of 0.1.0. It is no part of the norm.
    ClearGaps(layout_, room);
    // The noise is in proportion to the bound of the whole round, whatever share of it a fragment has.
    Privatise(clip_norm_, privacy_.noise_multiplier * privacy_.clip_norm, room, noise_.get());
    ClearGaps(layout_, room);
  }
  return feedback_.Encode(room, payload);
}

}  // namespace atl
