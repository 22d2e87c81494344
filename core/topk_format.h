#ifndef ATOLL_CORE_TOPK_FORMAT_H_
#define ATOLL_CORE_TOPK_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/codec_format.h"
#include "core/fragment_plan.h"
#include "core/position_coding.h"

// Sizes of the topk payloads, for the codecs and for the kernels of worker/cuda.

namespace atl {

/// How a block of `values` values, of which `largest` in 4096 are held, codes their positions.
constexpr PositionCoding TopKPositions(uint32_t largest, uint32_t values) {
  return {.values = values,
          .held = static_cast<uint32_t>((uint64_t{largest} * values + kChunkAlignment - 1) / kChunkAlignment),
          .low_bits = static_cast<uint32_t>(std::countr_zero(kChunkAlignment / largest))};
}

/// Bytes of `held` values in two bits each, with the two levels.
constexpr size_t TwoBitBytes(uint32_t held) { return kTopKLevelsBytes + (held + 3) / 4; }

/// Bytes of `held` values in bf16.
constexpr size_t BriefBytes(uint32_t held) { return held * kHalfBytes; }

}  // namespace atl

#endif  // ATOLL_CORE_TOPK_FORMAT_H_
