#include "core/codecs.h"
#include "core/scaled_blocks.h"
#include "core/scaled_formats.h"

namespace atl {

const Codec& E3m0Codec() {
  static const ScaledBlockCodec<E3m0Format> codec;
  return codec;
}

}  // namespace atl
