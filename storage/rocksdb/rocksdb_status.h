#ifndef ATOLL_STORAGE_ROCKSDB_ROCKSDB_STATUS_H_
#define ATOLL_STORAGE_ROCKSDB_ROCKSDB_STATUS_H_

#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "storage/rocksdb/db_access.h"

namespace atl {

/// The one translation of RocksDB's status. "<doing>: <RocksDB's text>"; `doing` names the database. A full
/// disk is ResourceExhausted, corruption DataLoss, a missing key or file NotFound, anything else Unavailable
/// or Internal.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing);

/// The same, of opening the database in `path`. DataLoss, naming the file, also where files of it are
/// missing, unless it is being made.
absl::Status FromOpening(const rocksdb::Status& status, const std::string& path, DbAccess access);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_ROCKSDB_STATUS_H_
