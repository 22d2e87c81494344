#ifndef ATOLL_CORE_DELTA_H_
#define ATOLL_CORE_DELTA_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/codec.h"

namespace atl {

/// So many are kept of each fragment, for workers that missed a version or two: together they are smaller
/// than the float32 values that would be sent instead.
inline constexpr size_t kDeltasKept = 3;

// Delta pulls (docs/reference/outer_step.md): what is published of version n+1 is what whoever holds version
// n makes of it, p(n+1) = p(n) + decode(encode(theta(n+1) - p(n))). Encoding the difference to what is
// published, and not to theta(n), keeps the loss of one version from adding to that of the next: |p - theta|
// stays within one encoding's error for ever. float32, each operation rounded once.

/// Encodes theta - from into `payload` (codec.EncodedSize(theta.size()) bytes), and writes what it makes of
/// `from` to `to`. Ranges may be done apart when each begins at a multiple of codec.block_elements().
/// FailedPrecondition naming the first element (counted from `first`) of `to` that is not finite.
absl::Status EncodeDelta(const Codec& codec, std::span<const float> theta, std::span<const float> from,
                         uint64_t first, std::span<std::byte> payload, std::span<float> to);

/// values += decode(payload), for a validated payload of values.size() elements.
void ApplyDelta(const Codec& codec, std::span<const std::byte> payload, std::span<float> values);

}  // namespace atl

#endif  // ATOLL_CORE_DELTA_H_
