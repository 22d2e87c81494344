#ifndef ATOLL_PROTOS_WIRE_CODEC_H_
#define ATOLL_PROTOS_WIRE_CODEC_H_

#include "absl/status/statusor.h"
#include "atoll/v1/run.pb.h"
#include "core/run_options.h"

namespace atl {

v1::Codec CodecToProto(CodecKind codec);

/// InvalidArgument for CODEC_UNSPECIFIED and for a codec of a newer version.
absl::StatusOr<CodecKind> CodecFromProto(v1::Codec codec);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_CODEC_H_
