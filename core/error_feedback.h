#ifndef ATOLL_CORE_ERROR_FEEDBACK_H_
#define ATOLL_CORE_ERROR_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/codec.h"

namespace atoll {

/// What encoding loses is carried to the next push: a = beta*e + delta; sent = decode(encode(a)); e = a -
/// sent. (Seide et al. 2014; Karimireddy et al., arXiv 1901.09847.) float32, each operation rounded once, so
/// e is exactly float32(a - sent), and sent + e == a to the bit wherever |sent| is within a factor 2 of |a|
/// (Sterbenz) or sent is 0.
///
/// Holds one residual for one fragment. Not thread-safe.
class ErrorFeedback {
 public:
  /// The residual starts at zero. The codec outlives this object. beta is in [0, 1].
  ErrorFeedback(const Codec& codec, double beta, uint64_t elements);

  /// Encodes beta*e + delta into `payload` (codec.EncodedSize(elements) bytes) and takes the new residual.
  /// InvalidArgument naming the element when delta, or the sum, is not finite; the residual is then
  /// unchanged.
  absl::Status Encode(std::span<const float> delta, std::span<std::byte> payload);

  /// The push of this payload was refused and will never count: what it would have carried returns to the
  /// residual (e += decode(payload)), so that no progress is lost. The payload is one that Encode wrote.
  void GiveBack(std::span<const std::byte> payload);

  /// For persistence: stored before the push is sent, put back after a restart.
  std::span<const float> residual() const { return residual_; }
  /// InvalidArgument when the size differs or a value is not finite; the residual is then unchanged.
  absl::Status Restore(std::span<const float> residual);
  void Reset();

 private:
  const Codec& codec_;
  const float beta_;
  std::vector<float> residual_;
};

}  // namespace atoll

#endif  // ATOLL_CORE_ERROR_FEEDBACK_H_
