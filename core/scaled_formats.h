#ifndef ATOLL_CORE_SCALED_FORMATS_H_
#define ATOLL_CORE_SCALED_FORMATS_H_

#include <bit>
#include <cstdint>

#include "common/instruction_set.h"
#include "core/codec_format.h"

// The arithmetic of int8, int4 and e3m0: scale of a block, code of a value, value of a code (ScaledBlocks in
// core/scaled_blocks.h has the contract). The only definition: the codecs use it on the processor, and the
// kernels of worker/cuda on a GPU, where nvcc compiles constexpr functions too.

namespace atl {

/// The level of a value in a grid of whole multiples of the scale, at most `most` either way: nearest, ties
/// to even.
ATOLL_INLINE constexpr int32_t NearestLevel(float value, float scale, float most) {
  // Adding 1.5 * 2^23 leaves the integer nearest in the low bits of the sum.
  constexpr float kRounder = 12582912.0f;
  constexpr int32_t kRounderBits = 0x4b400000;
  static_assert(std::bit_cast<int32_t>(kRounder) == kRounderBits);
  // A subnormal scale is so coarse that the quotient may leave the range.
  const float quotient = value / scale;
  const float above = quotient < -most ? -most : quotient;
  const float clamped = most < above ? most : above;
  return std::bit_cast<int32_t>(clamped + kRounder) - kRounderBits;
}

/// Whole multiples of the scale, two's complement in `bits` bits; the largest magnitude is `levels`.
template <CodecKind kind, unsigned bits, int32_t levels>
class IntegerFormat {
 public:
  static constexpr CodecKind kKind = kind;
  static constexpr unsigned kBits = bits;

  ATOLL_KERNEL constexpr float Scale(float largest) { return largest / kLevels; }

  ATOLL_INLINE constexpr explicit IntegerFormat(float scale) : scale_(scale) {}

  ATOLL_INLINE constexpr uint32_t Code(float value) const {
    return static_cast<uint32_t>(NearestLevel(value, scale_, kLevels)) & ((1u << bits) - 1);
  }

  ATOLL_KERNEL constexpr float Value(uint32_t code) {
    return static_cast<float>(static_cast<int32_t>(code << (32 - bits)) >>
                              (32 - bits));  // carries the sign down
  }

 private:
  static constexpr auto kLevels = static_cast<float>(levels);

  const float scale_;
};

using Int8Format = IntegerFormat<CodecKind::kInt8, 8, 127>;
using Int4Format = IntegerFormat<CodecKind::kInt4, 4, 7>;

/// Sign and three bits of exponent (Streaming DiLoCo, arXiv 2501.18512). The scale is the block's largest
/// magnitude and level 7 stands for it, so the steps below it are exact powers of two of a value of the
/// block.
class E3m0Format {
 public:
  static constexpr CodecKind kKind = CodecKind::kE3m0;
  static constexpr unsigned kBits = 4;

  ATOLL_KERNEL constexpr float Scale(float largest) { return largest; }

  /// least_[L - 1] is the smallest magnitude of level L: half way up from the level below.
  ATOLL_INLINE constexpr explicit E3m0Format(float scale) {
    // Each is 2^(L - 7) * scale times a half (from 0) or three quarters, in one rounded product.
    constexpr float kHalfWays[kE3m0Levels] = {0x1p-7f,   0x1.8p-6f, 0x1.8p-5f, 0x1.8p-4f,
                                              0x1.8p-3f, 0x1.8p-2f, 0x1.8p-1f};
    for (int32_t i = 0; i < kE3m0Levels; ++i) {
      const auto bits = std::bit_cast<int32_t>(kHalfWays[i] * scale);
      least_[i] = bits < 1 ? 1 : bits;  // zero stays zero, however small the scale
    }
  }

  ATOLL_INLINE constexpr uint32_t Code(float value) const {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
    uint32_t level = 0;
    for (int32_t i = 0; i < kE3m0Levels; ++i) level += static_cast<uint32_t>(magnitude >= least_[i]);
    return level == 0 ? 0 : level | (bits >> 28 & kE3m0SignBit);
  }

  ATOLL_KERNEL constexpr float Value(uint32_t code) {
    // The level as exponent is 2^(level - 127), and 0 for level 0; the product is exact.
    const uint32_t bits = (code & 7u) << 23 | (code & kE3m0SignBit) << 28;
    return std::bit_cast<float>(bits) * 0x1p120f;
  }

 private:
  int32_t least_[kE3m0Levels];
};

}  // namespace atl

#endif  // ATOLL_CORE_SCALED_FORMATS_H_
