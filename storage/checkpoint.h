#ifndef ATOLL_STORAGE_CHECKPOINT_H_
#define ATOLL_STORAGE_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"

namespace atl {

/// The request for a new checkpoint.
struct CheckpointRequest {
  std::string name = {};  // [a-z0-9][a-z0-9.-]{0,62}
  bool automatic = false;
  int64_t created_unix_ns = 0;
  std::string software_version = {};
};

/// One file of a checkpoint.
struct CheckpointFile {
  std::string path = {};  // relative to the checkpoint's folder, with '/'
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

/// The contents of a checkpoint: its file checkpoint.json, written last. A folder without that file is an
/// unfinished checkpoint, which nothing reads. Layout: docs/reference/storage_format.md.
struct CheckpointManifest {
  std::string name = {};
  std::string run_id = {};
  std::string run_name = {};
  std::string software_version = {};  // that wrote it
  Epoch epoch = {};
  std::vector<Version> versions = {};  // heads, by fragment
  uint64_t committed_tokens = 0;
  int64_t created_unix_ns = 0;
  bool automatic = false;
  std::vector<CheckpointFile> files = {};  // by path
  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

/// What an opened checkpoint is for.
enum class CheckpointUse : uint8_t {
  kRead = 1,
  kRestore = 2,  // an end of the process while it is open counts as one in the middle of a restore
};

/// A checkpoint as found on disk.
struct CheckpointEntry {
  CheckpointManifest manifest = {};  // only `name` if the manifest itself is damaged
  std::string path = {};
  uint64_t bytes = 0;
  uint64_t shared_bytes = 0;  // of these, in files that the run or another checkpoint also has
  std::string damage = {};    // which file, and how; empty: no damage found
  /// In a new checkpoint: payloads that it does not contain because they are damaged in the run. Their
  /// versions are stored, so only a recomputation of these versions would need them.
  std::vector<std::string> left_out = {};
};

}  // namespace atl

#endif  // ATOLL_STORAGE_CHECKPOINT_H_
