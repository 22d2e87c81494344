#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/scaled_blocks.h"

namespace atl {
namespace {

class Int8 {
 public:
  static constexpr CodecKind kKind = CodecKind::kInt8;
  static constexpr unsigned kBits = 8;

  ATOLL_KERNEL float Scale(float largest) { return largest / kInt8Levels; }

  ATOLL_INLINE explicit Int8(float scale) : scale_(scale) {}

  ATOLL_INLINE uint32_t Code(float value) const {
    return static_cast<uint32_t>(NearestLevel(value, scale_, kInt8Levels));
  }

  ATOLL_KERNEL float Value(uint32_t code) { return static_cast<float>(static_cast<int8_t>(code)); }

 private:
  const float scale_;
};

}  // namespace

const Codec& Int8Codec() {
  static const ScaledBlockCodec<Int8> codec;
  return codec;
}

}  // namespace atl
