#include "protos/wire/codec.h"

#include "absl/strings/str_cat.h"

namespace atoll {

v1::Codec CodecToProto(CodecKind codec) {
  switch (codec) {
    case CodecKind::kFp32:
      return v1::CODEC_FP32;
    case CodecKind::kFp16:
      return v1::CODEC_FP16;
    case CodecKind::kBf16:
      return v1::CODEC_BF16;
    case CodecKind::kInt8:
      return v1::CODEC_INT8;
  }
  return v1::CODEC_UNSPECIFIED;
}

absl::StatusOr<CodecKind> CodecFromProto(v1::Codec codec) {
  switch (codec) {
    case v1::CODEC_FP32:
      return CodecKind::kFp32;
    case v1::CODEC_FP16:
      return CodecKind::kFp16;
    case v1::CODEC_BF16:
      return CodecKind::kBf16;
    case v1::CODEC_INT8:
      return CodecKind::kInt8;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("codec ", static_cast<int>(codec),
                       " is not known here; known are fp32 (1), fp16 (2), bf16 (3), int8 (4)"));
  }
}

}  // namespace atoll
