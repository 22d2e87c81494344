#ifndef ATOLL_CORE_ERROR_FEEDBACK_H_
#define ATOLL_CORE_ERROR_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/codec.h"
#include "core/fragment_plan.h"

namespace atl {

/// Carries the encoding error to the next push. float32, each operation rounded once:
///
///   carry           a = beta*e + delta ; sent = decode(encode(a)) ; e = a - sent
///                   (Seide et al. 2014; Karimireddy et al., arXiv 1901.09847.) e is exactly float32(a -
///                   sent), and sent + e == a to the bit wherever |sent| is within a factor 2 of |a|
///                   (Sterbenz) or sent is 0: which codecs always are is in docs/reference/codecs.md.
///   moving_average  a = e + delta ; sent = decode(encode(a)) ; e = beta*e + (1 - beta)*(a - sent)
///                   (LoCo, arXiv 2407.04480: beta 0.8, e reset every 1024 steps.) A smoother e, which does
///                   not contain the whole error.
///
/// Averaged tensors have no residual: their difference is measured again at every round, with what the last
/// encoding lost in it. A residual would send that twice, and under topk as often as it was not sent.
///
/// Holds one residual e for one fragment: 4 bytes per value, and 512 KiB while it encodes. Not thread-safe.
class ErrorFeedback {
 public:
  /// The residual starts at zero. The codec outlives this object. beta is in [0, 1].
  /// `averaged`: where the residual stays zero (AveragedRanges).
  ErrorFeedback(const Codec& codec, double beta, uint64_t elements,
                ErrorFeedbackForm form = ErrorFeedbackForm::kCarry, std::vector<ElementRange> averaged = {});

  /// Encodes a into `payload` (codec.EncodedSize(elements) bytes) and updates the residual. InvalidArgument
  /// naming the element when delta, or the sum, is not finite; the residual is then unchanged.
  absl::Status Encode(std::span<const float> delta, std::span<std::byte> payload);

  /// Call it if the push of this payload was rejected and will never count. Returns the payload's contents to
  /// the residual (e += decode(payload), in both forms), so that no progress is lost. Encode wrote the
  /// payload.
  void GiveBack(std::span<const std::byte> payload);

  /// For persistence: store it before sending the push, and restore it after a restart.
  std::span<const float> residual() const { return residual_; }
  /// InvalidArgument when the size differs or a value is not finite; the residual is then unchanged.
  absl::Status Restore(std::span<const float> residual);
  void Reset();

 private:
  float kept() const { return form_ == ErrorFeedbackForm::kCarry ? beta_ : 1.0f; }  // of e, in a

  /// Zeroes the residual of averaged tensors.
  void ClearAveraged();

  const Codec& codec_;
  const float beta_;
  const ErrorFeedbackForm form_;
  const std::vector<ElementRange> averaged_;
  std::vector<float> residual_;
};

}  // namespace atl

#endif  // ATOLL_CORE_ERROR_FEEDBACK_H_
