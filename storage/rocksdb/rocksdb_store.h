#ifndef ATOLL_STORAGE_ROCKSDB_ROCKSDB_STORE_H_
#define ATOLL_STORAGE_ROCKSDB_ROCKSDB_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/disk_plan.h"
#include "storage/run_store.h"

namespace atl {

struct RocksDbStoreOptions {
  std::string data_dir;
  bool create_if_missing = true;
  /// See kDiskReserveBytes.
  uint64_t headroom_bytes = kDiskReserveBytes;
};

/// The store of docs/reference/storage_format.md. Opening recovers: what was promised is checked to be there,
/// and then leftovers of a crash are removed. When the check fails, nothing is changed. An upload must not
/// outlive its store.
///
/// InvalidArgument: the directory holds files of others and no run, or it lies in one of the folders of a
/// run. FailedPrecondition: another process holds the directory (its id is named), or the directory has
/// another number of shards. NotFound: no directory, and it must not be created. DataLoss: something
/// promised is missing or damaged; the message names it. ResourceExhausted: the disk is full.
absl::StatusOr<std::unique_ptr<RunStore>> OpenRocksDbStore(const RocksDbStoreOptions& options);

/// The newest configuration that is recorded in this directory. Empty: there is no run yet, and one can begin
/// there. Changes nothing and takes no lock, so another process may serve the run. It reads the records only,
/// and fails with InvalidArgument for the same directories as OpenRocksDbStore.
absl::StatusOr<std::string> RecordedConfig(const std::string& data_dir);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_ROCKSDB_STORE_H_
