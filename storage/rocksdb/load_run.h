#ifndef ATOLL_STORAGE_ROCKSDB_LOAD_RUN_H_
#define ATOLL_STORAGE_ROCKSDB_LOAD_RUN_H_

#include "absl/status/statusor.h"
#include "storage/rocksdb/meta_db.h"
#include "storage/run_loader.h"

namespace atl {

/// Every record of `meta`, checked. DataLoss naming the key.
absl::StatusOr<LoadedRun> LoadRun(MetaDb& meta);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_LOAD_RUN_H_
