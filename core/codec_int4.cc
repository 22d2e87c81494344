#include "core/codecs.h"
#include "core/scaled_blocks.h"
#include "core/scaled_formats.h"

namespace atl {

const Codec& Int4Codec() {
  static const ScaledBlockCodec<Int4Format> codec;
  return codec;
}

}  // namespace atl
