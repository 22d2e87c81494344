#ifndef ATOLL_PROTOS_WIRE_MANIFEST_H_
#define ATOLL_PROTOS_WIRE_MANIFEST_H_

#include "absl/status/statusor.h"
#include "atoll/v1/types.pb.h"
#include "core/contribution.h"
#include "core/manifest.h"

namespace atl {

v1::Manifest ManifestToProto(const Manifest& manifest);

/// As ValidateManifest: what comes back is within every bound of core/manifest.h.
absl::StatusOr<Manifest> ManifestFromProto(const v1::Manifest& manifest);

v1::ContentHash ContentHashToProto(const ContentHash& hash);
ContentHash ContentHashFromProto(const v1::ContentHash& hash);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_MANIFEST_H_
