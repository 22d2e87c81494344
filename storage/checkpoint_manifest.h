#ifndef ATOLL_STORAGE_CHECKPOINT_MANIFEST_H_
#define ATOLL_STORAGE_CHECKPOINT_MANIFEST_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint.h"

// checkpoint.json: JSON, so that people and tools can read it, with a checksum of itself. Layout:
// docs/reference/storage_format.md.

namespace atl {

inline constexpr char kCheckpointManifestFile[] = "checkpoint.json";
inline constexpr uint32_t kCheckpointFormat = 1;

std::string EncodeCheckpointManifest(const CheckpointManifest& manifest);

/// DataLoss naming `source` and what is wrong for anything that EncodeCheckpointManifest cannot have written;
/// paths that lead out of the folder are refused.
absl::StatusOr<CheckpointManifest> DecodeCheckpointManifest(std::string_view text, std::string_view source);

/// InvalidArgument: it becomes the name of a folder. [a-z0-9][a-z0-9.-]{0,62}
absl::Status CheckCheckpointName(std::string_view name);

/// NotFound, naming it.
absl::Status NoSuchCheckpoint(std::string_view name);

}  // namespace atl

#endif  // ATOLL_STORAGE_CHECKPOINT_MANIFEST_H_
