#ifndef ATOLL_CLIENT_SYNC_FRAGMENT_ENCODER_H_
#define ATOLL_CLIENT_SYNC_FRAGMENT_ENCODER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/fragment_plan.h"
#include "core/privacy.h"
#include "core/run_options.h"

namespace atl {

class Replica;

/// What the run asks of the encoding of one fragment.
struct EncoderOptions {
  uint64_t elements = 0;
  std::vector<ElementRange> averaged = {};  // where there is no residual (ErrorFeedback)
  CodecKind codec = CodecKind::kFp32;
  double beta = 0;  // of the error feedback; 0: what an encoding loses is dropped
  ErrorFeedbackForm form = ErrorFeedbackForm::kCarry;
  PrivacyOptions privacy;
  double clip_norm = 0;                   // of this fragment, with privacy
  std::shared_ptr<GaussianSource> noise;  // with privacy

  /// With noise that nobody can predict (SecretNoise).
  static EncoderOptions Of(const RunOptions& run, const FragmentLayout& layout);
  /// Of a fragment without averaged tensors.
  static EncoderOptions Of(const RunOptions& run, uint64_t elements);
};

/// Measures and encodes the pseudo-gradients of one fragment where the replica keeps its parameters, and
/// holds the error-feedback residual. A replica makes its own encoders (Replica::MakeEncoder), so that a
/// device can do all of it.
///
/// The payload and the residual after Encode are on the host: both are written to disk before the push is
/// sent. For the same inputs every implementation has the bits of HostFragmentEncoder. One thread at a time
/// calls it: the training thread, or the exchange that has the fragment.
class FragmentEncoder {
 public:
  virtual ~FragmentEncoder() = default;

  /// The inner steps before the next Measure begin. `from_base`: the caller promises that the parameters of
  /// the fragment are the base of that Measure now. An implementation on a device keeps them there, so that
  /// Measure copies no base to it. Need not be called.
  virtual void BeginSteps(const FragmentLayout& /*fragment*/, bool /*from_base*/) {}

  /// Takes base - local, as the replica's parameters are now. The replica is the one that made the encoder;
  /// this is called on its thread. `room` is host memory for one fragment that stays untouched until Encode:
  /// an implementation on the host keeps the values there, one on a device need not use it.
  virtual absl::Status Measure(const FragmentLayout& fragment, std::span<const float> base, Replica& replica,
                               std::span<float> room) = 0;

  /// Clips and adds noise where the run has privacy, adds the residual, encodes into `payload` and takes the
  /// next residual. `room` is that of Measure, and is overwritten with privacy. InvalidArgument naming the
  /// element when a value is not finite; the residual is then unchanged.
  virtual absl::Status Encode(std::span<float> room, std::span<std::byte> payload) = 0;

  /// The content of a payload that Encode wrote returns to the residual: its push will never count.
  virtual void GiveBack(std::span<const std::byte> payload) = 0;

  /// For persistence, valid until the next call that changes it.
  virtual std::span<const float> residual() const = 0;
  /// InvalidArgument when the size differs or a value is not finite; the residual is then unchanged.
  virtual absl::Status Restore(std::span<const float> residual) = 0;
  /// To zero.
  virtual void Reset() = 0;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_FRAGMENT_ENCODER_H_
