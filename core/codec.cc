#include "core/codec.h"

#include <string>

#include "absl/strings/str_format.h"
#include "core/codecs.h"

namespace atl {

const Codec* FindCodec(CodecKind kind) {
  switch (kind) {
    case CodecKind::kFp32:
      return &Fp32Codec();
    case CodecKind::kFp16:
      return &Fp16Codec();
    case CodecKind::kBf16:
      return &Bf16Codec();
    case CodecKind::kInt8:
      return &Int8Codec();
    case CodecKind::kInt4:
      return &Int4Codec();
    case CodecKind::kE3m0:
      return &E3m0Codec();
    case CodecKind::kInt8Quantile:
      return &Int8QuantileCodec();
    case CodecKind::kTopK64:
      return &TopK64Codec();
    case CodecKind::kTopK128:
      return &TopK128Codec();
    case CodecKind::kTopK64Bf16:
      return &TopK64Bf16Codec();
    case CodecKind::kTopK128Bf16:
      return &TopK128Bf16Codec();
  }
  return nullptr;
}

const Codec& CodecFor(CodecKind kind) {
  const Codec* codec = FindCodec(kind);
  return codec != nullptr ? *codec : Fp32Codec();
}

std::string_view CodecName(CodecKind kind) {
  switch (kind) {
    case CodecKind::kFp32:
      return "fp32";
    case CodecKind::kFp16:
      return "fp16";
    case CodecKind::kBf16:
      return "bf16";
    case CodecKind::kInt8:
      return "int8";
    case CodecKind::kInt4:
      return "int4";
    case CodecKind::kE3m0:
      return "e3m0";
    case CodecKind::kInt8Quantile:
      return "int8_quantile";
    case CodecKind::kTopK64:
      return "topk64";
    case CodecKind::kTopK128:
      return "topk128";
    case CodecKind::kTopK64Bf16:
      return "topk64_bf16";
    case CodecKind::kTopK128Bf16:
      return "topk128_bf16";
  }
  return "unknown";
}

absl::Status CheckPayloadSize(const Codec& codec, std::span<const std::byte> payload, uint64_t elements) {
  const uint64_t expected = codec.EncodedSize(elements);
  if (payload.size() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s payload has %d bytes, but %d values take %d; encode the whole fragment, padding included",
      std::string(CodecName(codec.kind())), payload.size(), elements, expected));
}

}  // namespace atl
