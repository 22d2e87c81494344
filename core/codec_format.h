#ifndef ATOLL_CORE_CODEC_FORMAT_H_
#define ATOLL_CORE_CODEC_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/codec.h"
#include "core/fragment_plan.h"

// Constants of the payload grammars in docs/reference/codecs.md.

namespace atl {

static_assert(std::endian::native == std::endian::little, "payloads are little-endian and read in place");

inline constexpr size_t kFp32Bytes = 4;
inline constexpr size_t kHalfBytes = 2;

/// Block size of codecs without their own block structure, which keeps ranges aligned.
inline constexpr uint64_t kPlainBlock = 64;

/// int8, int4, e3m0: a block is a float32 scale followed by one code of 8 or 4 bits per value.
inline constexpr uint64_t kScaledBlock = 256;
inline constexpr size_t kScaleBytes = 4;

// int8: codes are the levels -127..127 in two's complement; int4: -7..7.

/// e3m0: three bits of level, one of sign. Level L means 2^(L - 7) times the scale; level 0 means zero.
inline constexpr uint32_t kE3m0SignBit = 0x8;
inline constexpr int32_t kE3m0Levels = 7;

/// int8_quantile: sections of a codebook of 256 float32 values followed by one code per value.
inline constexpr uint64_t kQuantileSection = 65536;
inline constexpr uint32_t kQuantileLevels = 256;
inline constexpr size_t kQuantileCodebookBytes = kQuantileLevels * sizeof(float);
inline constexpr uint32_t kQuantileZero = 128;

/// topk: of each block of 4096 values, positions (core/position_coding.h), then bf16 values, or two float32
/// levels, the lower first, and two bits per value.
inline constexpr size_t kTopKLevelsBytes = 8;
inline constexpr uint32_t kTopKUpperBit = 1;
inline constexpr uint32_t kTopKSignBit = 2;
inline constexpr int kTopKLloydRounds = 3;

static_assert(kPayloadPiece % kChunkAlignment == 0 && kPayloadPiece % kQuantileSection == 0);
static_assert(kChunkAlignment % kPlainBlock == 0 && kChunkAlignment % kScaledBlock == 0);
static_assert(kSlotAlignment % kScaledBlock == 0, "no block holds values of two tensors");

}  // namespace atl

#endif  // ATOLL_CORE_CODEC_FORMAT_H_
