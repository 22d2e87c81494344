#ifndef ATOLL_STORAGE_ROCKSDB_FIND_RUN_H_
#define ATOLL_STORAGE_ROCKSDB_FIND_RUN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/run_loader.h"

// What a data directory holds, found without changing it: a start that is refused must leave everything that
// a repair could need.

namespace atl {

struct FoundRun {
  bool is_new = false;  // there is no trace of a run: the databases are to be made
  LoadedRun run;
  /// kNew: the directory is a checkpoint that was checked just now. kBegun: it was one, and its epoch is
  /// still to be left. kLeft: that was done, and only the note stayed.
  enum class Checkpoint : uint8_t { kNone, kNew, kBegun, kLeft } checkpoint = Checkpoint::kNone;
};

/// DataLoss, naming a file, folder or record, when something promised is missing or damaged, or when the
/// directory holds more than its records know of, so that records must have been lost. FailedPrecondition:
/// the shards are not the run's.
absl::StatusOr<FoundRun> FindRun(const DataDir& dir);

/// InvalidArgument when the directory is one of the folders of another run, or lies in one: that run would
/// write to it or remove it.
absl::Status CheckNotInsideARun(const DataDir& dir);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_FIND_RUN_H_
