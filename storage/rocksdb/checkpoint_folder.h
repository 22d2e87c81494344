#ifndef ATOLL_STORAGE_ROCKSDB_CHECKPOINT_FOLDER_H_
#define ATOLL_STORAGE_ROCKSDB_CHECKPOINT_FOLDER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint.h"
#include "storage/rocksdb/checkpoint_payloads.h"

namespace atl {

/// checkpoints/: one folder each, itself a data directory, finished by its manifest. Thread-safe for reading;
/// one Create or Delete of a name at a time.
class CheckpointFolder {
 public:
  /// Removes unfinished checkpoints: folders with the name of a checkpoint but without a manifest. Keeps
  /// folders with foreign files. The folder itself need not exist.
  static absl::StatusOr<CheckpointFolder> Open(const std::string& path);

  /// `fill` puts the parts into the given new folder. Compares the payloads with the accepted ones: DataLoss
  /// names a damaged payload without which the head cannot be rebuilt; other damaged ones are omitted.
  /// Removes the folder after an error.
  struct Filled {
    CheckpointManifest manifest;  // but for `files`
    std::vector<CheckpointPayload> payloads;
  };
  using Fill = std::function<absl::StatusOr<Filled>(const std::string& folder)>;
  absl::StatusOr<CheckpointEntry> Create(const std::string& name, const Fill& fill) const;
  /// By time of creation, then name. Damaged checkpoints are listed with their damage.
  absl::StatusOr<std::vector<CheckpointEntry>> List(bool check_contents) const;
  /// NotFound; DataLoss naming the damaged file. Reads everything.
  absl::StatusOr<CheckpointEntry> Check(const std::string& name) const;
  /// Deletes the manifest first, so that a partly deleted checkpoint never looks complete. NotFound.
  absl::Status Delete(const std::string& name) const;

 private:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}
  CheckpointEntry Inspect(const std::string& name, bool check_contents) const;

  std::string path_;
};

/// The manifest in this file. NotFound; DataLoss.
absl::StatusOr<CheckpointManifest> ReadCheckpointManifest(const std::string& path);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_CHECKPOINT_FOLDER_H_
