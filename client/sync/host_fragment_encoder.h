#ifndef ATOLL_CLIENT_SYNC_HOST_FRAGMENT_ENCODER_H_
#define ATOLL_CLIENT_SYNC_HOST_FRAGMENT_ENCODER_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "client/sync/fragment_encoder.h"
#include "core/error_feedback.h"

namespace atl {

/// On the processor, with the arithmetic of core/. Works for every replica: it reads the parameters with
/// Replica::ReadFragment. Memory: 4 bytes per parameter.
class HostFragmentEncoder final : public FragmentEncoder {
 public:
  explicit HostFragmentEncoder(const EncoderOptions& options);

  absl::Status Measure(const FragmentLayout& fragment, std::span<const float> base, Replica& replica,
                       std::span<float> room) override;
  absl::Status Encode(std::span<float> room, std::span<std::byte> payload) override;
  void GiveBack(std::span<const std::byte> payload) override { feedback_.GiveBack(payload); }
  std::span<const float> residual() const override { return feedback_.residual(); }
  absl::Status Restore(std::span<const float> residual) override { return feedback_.Restore(residual); }
  void Reset() override { feedback_.Reset(); }

 private:
  const PrivacyOptions privacy_;
  const double clip_norm_;
  const std::shared_ptr<GaussianSource> noise_;
  FragmentLayout layout_;  // of the latest Measure, with privacy
  ErrorFeedback feedback_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_HOST_FRAGMENT_ENCODER_H_
