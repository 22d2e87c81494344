#ifndef ATOLL_CORE_PAYLOAD_SQUARES_H_
#define ATOLL_CORE_PAYLOAD_SQUARES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/codec.h"

namespace atl {

/// Adds the squares of what a validated payload decodes to, block by block of kChunkAlignment values, to
/// `squares`. PayloadNorm is the root of that; where a payload is cut at multiples of the blocks, adding
/// piece after piece gives the same bits. InvalidArgument naming the element, counted from the payload's
/// first, when a value is not finite.
absl::Status AddSquares(const Codec& codec, std::span<const std::byte> payload, uint64_t elements,
                        double& squares);

}  // namespace atl

#endif  // ATOLL_CORE_PAYLOAD_SQUARES_H_
