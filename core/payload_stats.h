#ifndef ATOLL_CORE_PAYLOAD_STATS_H_
#define ATOLL_CORE_PAYLOAD_STATS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "core/codec.h"

namespace atl {

/// The largest norm of a contribution. The squares of a larger one would overflow float32.
inline constexpr double kMaxContributionNorm = 1e18;

/// L2 norm of what a validated payload decodes to, and the proof that every value of it is finite. Float64,
/// with a fixed order of summation (below), so that it is the same on every machine. InvalidArgument naming
/// the element when a decoded value is not finite.
absl::StatusOr<double> PayloadNorm(const Codec& codec, std::span<const std::byte> payload, uint64_t elements);

/// L2 norm of plain values by the same summation: blocks of 4096 values in order, inside a block the order of
/// DeterministicSumOfSquares (core/deterministic_sum.h).
double VectorNorm(std::span<const float> values);

/// Index of the first value that is not finite.
std::optional<uint64_t> FirstNonFinite(std::span<const float> values);

}  // namespace atl

#endif  // ATOLL_CORE_PAYLOAD_STATS_H_
