#ifndef ATOLL_STORAGE_ROCKSDB_FIND_RUN_H_
#define ATOLL_STORAGE_ROCKSDB_FIND_RUN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/run_loader.h"

// Examines a data directory without changing it: a rejected start must keep everything that a repair could
// need.

namespace atl {

struct FoundRun {
  bool is_new = false;  // no trace of a run: the databases must be created
  LoadedRun run;
  /// kNew: the directory is a checkpoint that was checked just now. kBegun: it was one, and its epoch is
  /// still to be left. kLeft: that was done, and only the note stayed.
  enum class Checkpoint : uint8_t { kNone, kNew, kBegun, kLeft } checkpoint = Checkpoint::kNone;
};

/// DataLoss, with a file, folder or record, if something acknowledged is missing or damaged, or if the
/// directory holds more than its records describe, which means that records were lost. FailedPrecondition:
/// the shards belong to another run.
absl::StatusOr<FoundRun> FindRun(const DataDir& dir);

/// InvalidArgument if the directory is inside a folder of another run, which would write to it or remove it.
absl::Status CheckNotInsideARun(const DataDir& dir);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_FIND_RUN_H_
