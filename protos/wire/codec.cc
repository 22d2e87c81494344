#include "protos/wire/codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/codec.h"

namespace atl {

// The core's kinds have the numbers of the protobuf ones (protos/config/run_options.cc).

v1::Codec CodecToProto(CodecKind codec) {
  return FindCodec(codec) != nullptr ? static_cast<v1::Codec>(codec) : v1::CODEC_UNSPECIFIED;
}

absl::StatusOr<CodecKind> CodecFromProto(v1::Codec codec) {
  for (const CodecKind kind : kCodecKinds) {
    if (static_cast<int>(kind) == static_cast<int>(codec)) return kind;
  }
  std::string known;
  for (const CodecKind kind : kCodecKinds) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(CodecName(kind)), " (",
                    static_cast<int>(kind), ")");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec ", static_cast<int>(codec), " is not known here; known are ", known));
}

}  // namespace atl
