#include "core/codecs.h"
#include "core/scaled_blocks.h"
#include "core/scaled_formats.h"

namespace atl {

const Codec& Int8Codec() {
  static const ScaledBlockCodec<Int8Format> codec;
  return codec;
}

}  // namespace atl
