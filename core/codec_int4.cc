#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/scaled_blocks.h"

namespace atl {
namespace {

class Int4 {
 public:
  static constexpr CodecKind kKind = CodecKind::kInt4;
  static constexpr unsigned kBits = 4;

  ATOLL_KERNEL float Scale(float largest) { return largest / kInt4Levels; }

  ATOLL_INLINE explicit Int4(float scale) : scale_(scale) {}

  ATOLL_INLINE uint32_t Code(float value) const {
    return static_cast<uint32_t>(NearestLevel(value, scale_, kInt4Levels)) & 15u;
  }

  ATOLL_KERNEL float Value(uint32_t code) {
    return static_cast<float>(static_cast<int32_t>(code << 28) >> 28);  // carries the sign down
  }

 private:
  const float scale_;
};

}  // namespace

const Codec& Int4Codec() {
  static const ScaledBlockCodec<Int4> codec;
  return codec;
}

}  // namespace atl
