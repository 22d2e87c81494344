#include "worker/sync/host_fragment_encoder.h"

#include <memory>

#include "common/status.h"
#include "core/codec.h"
#include "worker/sync/replica.h"
#include "worker/sync/secret_noise.h"

namespace atl {

EncoderOptions EncoderOptions::Of(const RunOptions& run, uint64_t elements) {
  return {.elements = elements,
          .codec = run.push_codec,
          // Carried with beta 0 is not carried.
          .beta = run.error_feedback ? run.error_feedback_beta : 0,
          .form = run.error_feedback ? run.error_feedback_form : ErrorFeedbackForm::kCarry,
          .privacy = run.privacy,
          .clip_norm = FragmentClipNorm(run.privacy, run.sync.fragments),
          .noise = std::make_shared<SecretNoise>()};
}

std::unique_ptr<FragmentEncoder> Replica::MakeEncoder(const EncoderOptions& options) {
  return std::make_unique<HostFragmentEncoder>(options);
}

HostFragmentEncoder::HostFragmentEncoder(const EncoderOptions& options)
    : privacy_(options.privacy),
      clip_norm_(options.clip_norm),
      noise_(options.noise),
      feedback_(CodecFor(options.codec), options.beta, options.elements, options.form) {}

absl::Status HostFragmentEncoder::Measure(const FragmentLayout& fragment, std::span<const float> base,
                                          Replica& replica, std::span<float> room) {
  ATOLL_RETURN_IF_ERROR(replica.ReadFragment(fragment, room));
  for (size_t i = 0; i < room.size(); ++i) room[i] = base[i] - room[i];
  return absl::OkStatus();
}

absl::Status HostFragmentEncoder::Encode(std::span<float> room, std::span<std::byte> payload) {
  if (privacy_.enabled()) {
    // The noise is in proportion to the bound of the whole round, whatever share of it a fragment has.
    Privatise(clip_norm_, privacy_.noise_multiplier * privacy_.clip_norm, room, noise_.get());
  }
  return feedback_.Encode(room, payload);
}

}  // namespace atl
