#ifndef ATOLL_WORKER_CUDA_KERNELS_TOPK_BLOCK_H_
#define ATOLL_WORKER_CUDA_KERNELS_TOPK_BLOCK_H_

#include <bit>
#include <cstdint>

#include "core/codec_format.h"
#include "core/float_bits.h"
#include "core/topk_format.h"
#include "worker/cuda/device.h"
#include "worker/cuda/kernels/encode_scaled.h"
#include "worker/cuda/kernels/square_sum.h"
#include "worker/cuda/kernels/two_means.h"

namespace atl::device {

/// The bytes of one block of topk in shared memory, as little-endian words that begin as zeros: threads add
/// fields of bits with atomic operations, wherever a field starts. docs/reference/codecs.md has the grammar.
template <uint32_t kLargest, bool kTwoBits>
struct TopKBlock {
  ATOLL_DEVICE static uint32_t Bytes(const PositionCoding& coding) {
    return static_cast<uint32_t>(coding.bytes() +
                                 (kTwoBits ? TwoBitBytes(coding.held) : BriefBytes(coding.held)));
  }

  static constexpr PositionCoding kWhole = TopKPositions(kLargest, kChunk);
  static constexpr uint32_t kWholeBytes =
      static_cast<uint32_t>(kWhole.bytes() + (kTwoBits ? TwoBitBytes(kLargest) : BriefBytes(kLargest)));
  static_assert(kWholeBytes % 4 == 0, "a block's payload begins at a word");
  static constexpr uint32_t kWords =
      kWholeBytes / 4 + 1;  // a short block may have more bytes in its last word
  static constexpr uint32_t kLevelBits = 8 * static_cast<uint32_t>(kTopKLevelsBytes);
  using Words = SharedArray<uint32_t, kWords>;

  ATOLL_DEVICE static void StorePosition(const PositionCoding& coding, uint32_t index, uint32_t position,
                                         Words& words) {
    AddBits(words, (position >> coding.low_bits) + index, 1, 1);
    const uint32_t low = position & ((1u << coding.low_bits) - 1);
    AddBits(words, 8 * static_cast<uint32_t>(coding.upper_bytes()) + index * coding.low_bits, coding.low_bits,
            low);
  }

  ATOLL_DEVICE static void StoreLevels(const PositionCoding& coding, const TwoMeans& means, Words& words) {
    const auto at = 8 * static_cast<uint32_t>(coding.bytes());
    AddBits(words, at, 32, means.finite ? std::bit_cast<uint32_t>(static_cast<float>(means.low)) : kNanBits);
    AddBits(words, at + 32, 32,
            means.finite ? std::bit_cast<uint32_t>(static_cast<float>(means.high)) : kNanBits);
  }

  /// What the value decodes to.
  ATOLL_DEVICE static float StoreValue(const PositionCoding& coding, uint32_t index, float value,
                                       const TwoMeans& means, Words& words) {
    const auto at = 8 * static_cast<uint32_t>(coding.bytes());
    if constexpr (!kTwoBits) {
      const uint16_t brief = Bf16FromFloat(value);
      AddBits(words, at + 16 * index, 16, brief);
      return FloatFromBf16(brief);
    }
    if (!means.finite) return std::bit_cast<float>(kNanBits);
    const bool upper = means.Upper(value);
    const bool negative = value < 0;
    AddBits(words, at + kLevelBits + 2 * index, 2,
            (upper ? kTopKUpperBit : 0) | (negative ? kTopKSignBit : 0));
    const auto level = static_cast<float>(upper ? means.high : means.low);
    return negative ? -level : level;
  }

  /// `width` bits from bit `at` on.
  ATOLL_DEVICE static uint32_t Bits(const Words& words, uint32_t at, uint32_t width) {
    const uint32_t shift = at % 32;
    uint64_t both = words.Load(at / 32);
    if (shift + width > 32) both |= uint64_t{words.Load(at / 32 + 1)} << 32;
    return static_cast<uint32_t>(both >> shift & ((uint64_t{1} << width) - 1));
  }

 private:
  ATOLL_DEVICE static void AddBits(Words& words, uint32_t at, uint32_t width, uint32_t bits) {
    const uint64_t both = uint64_t{bits} << (at % 32);
    words.AtomicOr(at / 32, static_cast<uint32_t>(both));
    if (at % 32 + width > 32) words.AtomicOr(at / 32 + 1, static_cast<uint32_t>(both >> 32));
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_TOPK_BLOCK_H_
