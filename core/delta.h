#ifndef ATOLL_CORE_DELTA_H_
#define ATOLL_CORE_DELTA_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/codec.h"

namespace atl {

/// Number of differences kept per fragment, for workers that missed a version or two. Together they are
/// smaller than the float32 values that would be sent instead.
inline constexpr size_t kDeltasKept = 3;

// Delta pulls (docs/reference/outer_step.md). The published version n+1 is what a holder of version n
// computes: p(n+1) = p(n) + decode(encode(theta(n+1) - p(n))). The difference is taken to the published p(n),
// not to theta(n), so that encoding errors do not add up: |p - theta| always stays within one encoding's
// error. float32, each operation rounded once.

/// Encodes theta - from into `payload` (codec.EncodedSize(theta.size()) bytes), and writes from +
/// decode(payload) to `to`. Ranges that start at multiples of codec.block_elements() may be processed
/// separately. FailedPrecondition naming the first element (counted from `first`) of `to` that is not finite.
absl::Status EncodeDelta(const Codec& codec, std::span<const float> theta, std::span<const float> from,
                         uint64_t first, std::span<std::byte> payload, std::span<float> to);

/// values += decode(payload), for a validated payload of values.size() elements.
void ApplyDelta(const Codec& codec, std::span<const std::byte> payload, std::span<float> values);

}  // namespace atl

#endif  // ATOLL_CORE_DELTA_H_
