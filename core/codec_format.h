#ifndef ATOLL_CORE_CODEC_FORMAT_H_
#define ATOLL_CORE_CODEC_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/fragment_plan.h"

// Constants of the payload grammars in docs/codecs.md.

namespace atoll {

static_assert(std::endian::native == std::endian::little, "payloads are little-endian and read in place");

inline constexpr size_t kFp32Bytes = 4;
inline constexpr size_t kHalfBytes = 2;

/// Codecs without a block structure of their own are cut at this size, which keeps ranges aligned.
inline constexpr uint64_t kPlainBlock = 64;

/// int8: a block is a float32 scale followed by one signed byte per value.
inline constexpr uint64_t kInt8Block = 256;
inline constexpr size_t kInt8ScaleBytes = 4;
inline constexpr float kInt8Levels = 127.0f;

static_assert(kChunkAlignment % kPlainBlock == 0 && kChunkAlignment % kInt8Block == 0);
static_assert(kSlotAlignment % kInt8Block == 0, "no block holds values of two tensors");

/// fp16 saturates finite values at its largest one (0x7bff), bf16 at its own (0x7f7f).
inline constexpr float kFp16Max = 65504.0f;

}  // namespace atoll

#endif  // ATOLL_CORE_CODEC_FORMAT_H_
