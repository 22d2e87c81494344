#ifndef ATOLL_STORAGE_ROCKSDB_DATA_DIR_H_
#define ATOLL_STORAGE_ROCKSDB_DATA_DIR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/file.h"
#include "storage/rocksdb/shard_set.h"
#include "storage/run_store.h"

namespace atl {

/// Names in a data directory.
struct DataDir {
  std::string root;
  std::string lock() const { return JoinPath(root, "LOCK"); }
  std::string meta() const { return JoinPath(root, "meta"); }
  std::string shards() const { return JoinPath(root, "shards"); }
  std::string staging() const { return JoinPath(root, "sst"); }
  std::string contributions() const { return JoinPath(root, "contributions"); }
  std::string checkpoints() const { return JoinPath(root, "checkpoints"); }
  /// Says that this directory is a checkpoint.
  std::string checkpoint_manifest() const { return JoinPath(root, "checkpoint.json"); }
  /// The same, checked: the run begins its new epoch, and then this goes.
  std::string checkpoint_begun() const { return JoinPath(root, "checkpoint.begun.json"); }
  /// Tensors of a version above the head may be there: a new epoch is being written, or was when the process
  /// ended.
  std::string epoch_begun() const { return JoinPath(root, "epoch.begun"); }
  /// A restore is under way, or was when the process ended.
  std::string restore_note() const { return JoinPath(root, "restore.begun"); }
  /// The run is to be seeded from a file, or was to be when the process ended.
  std::string import_note() const { return JoinPath(root, "import.begun"); }
};

/// The run's shards in this directory.
absl::StatusOr<std::unique_ptr<ShardSet>> OpenShards(const DataDir& dir, const RunIdentity& identity,
                                                     DbAccess access = DbAccess::kReadWrite);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_DATA_DIR_H_
