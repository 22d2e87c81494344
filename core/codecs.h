#ifndef ATOLL_CORE_CODECS_H_
#define ATOLL_CORE_CODECS_H_

#include "core/codec.h"

// The codecs, one function per kind. Other code uses CodecFor (core/codec.h).

namespace atl {

const Codec& Fp32Codec();
const Codec& Fp16Codec();
const Codec& Bf16Codec();
const Codec& Int8Codec();
const Codec& Int4Codec();
const Codec& E3m0Codec();
const Codec& Int8QuantileCodec();
const Codec& TopK64Codec();
const Codec& TopK128Codec();
const Codec& TopK64Bf16Codec();
const Codec& TopK128Bf16Codec();

/// InvalidArgument if a payload does not have the exact size for `elements` values.
absl::Status CheckPayloadSize(const Codec& codec, std::span<const std::byte> payload, uint64_t elements);

}  // namespace atl

#endif  // ATOLL_CORE_CODECS_H_
