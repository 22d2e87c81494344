#include "client/sync/fragment_encoder.h"

#include <memory>

#include "client/sync/secret_noise.h"

namespace atl {

EncoderOptions EncoderOptions::Of(const RunOptions& run, const FragmentLayout& layout) {
  EncoderOptions options = Of(run, layout.elements);
  options.averaged = AveragedRanges(layout);
  return options;
}

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

}  // namespace atl
