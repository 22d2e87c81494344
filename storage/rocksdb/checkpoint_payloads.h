#ifndef ATOLL_STORAGE_ROCKSDB_CHECKPOINT_PAYLOADS_H_
#define ATOLL_STORAGE_ROCKSDB_CHECKPOINT_PAYLOADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "storage/checkpoint.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/store_index.h"

// The payloads of a checkpoint, judged by the records of the contributions: the manifest alone cannot tell a
// payload that was already damaged when the checkpoint was made.

namespace atl {

/// A payload that a round counted, as it was acknowledged.
struct CheckpointPayload {
  std::string path = {};  // relative to the data directory
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  std::string contribution = {};  // for people
  Version version = {};           // that counted it
  bool needed = false;            // that version is not stored: the head cannot be rebuilt without it
};

std::vector<CheckpointPayload> PayloadsOf(const StoreIndex& store_index);

/// Compares the files of a checkpoint that is being made with the payloads that it must have. DataLoss naming
/// a damaged payload that is needed. Other damaged payloads are removed from `files` and from the folder;
/// returns their paths.
absl::StatusOr<std::vector<std::string>> LeaveOutDamaged(const std::string& folder,
                                                         const std::vector<CheckpointPayload>& payloads,
                                                         std::vector<CheckpointFile>& files);

/// As CheckFiles for all files of a checkpoint, and (kContents) whether its payloads are those that were
/// accepted. Payloads that no round counted, which older programs put into checkpoints, may be damaged.
absl::Status CheckCheckpoint(const std::string& folder, const CheckpointManifest& manifest, FileCheck check);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_CHECKPOINT_PAYLOADS_H_
