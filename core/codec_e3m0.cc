#include <bit>

#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/scaled_blocks.h"

namespace atl {
namespace {

/// Sign and three bits of exponent (Streaming DiLoCo, arXiv 2501.18512). The scale is the block's largest
/// magnitude and level 7 stands for it, so the steps below it are exact powers of two of a value of the
/// block.
class E3m0 {
 public:
  static constexpr CodecKind kKind = CodecKind::kE3m0;
  static constexpr unsigned kBits = 4;

  ATOLL_KERNEL float Scale(float largest) { return largest; }

  /// least_[L - 1] is the smallest magnitude of level L: half way up from the level below.
  ATOLL_INLINE explicit E3m0(float scale) {
    // Each is 2^(L - 7) * scale times a half (from 0) or three quarters, in one rounded product.
    constexpr float kHalfWays[kE3m0Levels] = {0x1p-7f,   0x1.8p-6f, 0x1.8p-5f, 0x1.8p-4f,
                                              0x1.8p-3f, 0x1.8p-2f, 0x1.8p-1f};
    for (int32_t i = 0; i < kE3m0Levels; ++i) {
      const auto bits = std::bit_cast<int32_t>(kHalfWays[i] * scale);
      least_[i] = bits < 1 ? 1 : bits;  // zero stays zero, however small the scale
    }
  }

  ATOLL_INLINE uint32_t Code(float value) const {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
    uint32_t level = 0;
    for (int32_t i = 0; i < kE3m0Levels; ++i) level += static_cast<uint32_t>(magnitude >= least_[i]);
    return level == 0 ? 0 : level | (bits >> 28 & kE3m0SignBit);
  }

  ATOLL_KERNEL float Value(uint32_t code) {
    // The level as exponent is 2^(level - 127), and 0 for level 0; the product is exact.
    const uint32_t bits = (code & 7u) << 23 | (code & kE3m0SignBit) << 28;
    return std::bit_cast<float>(bits) * 0x1p120f;
  }

 private:
  int32_t least_[kE3m0Levels];
};

}  // namespace

const Codec& E3m0Codec() {
  static const ScaledBlockCodec<E3m0> codec;
  return codec;
}

}  // namespace atl
