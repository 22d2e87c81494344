#ifndef ATOLL_STORAGE_ROCKSDB_COPY_DATABASE_H_
#define ATOLL_STORAGE_ROCKSDB_COPY_DATABASE_H_

#include <string>

#include "absl/status/status.h"

namespace rocksdb {
class DB;
}

namespace atl {

/// A copy of the database as of now in the folder `to`, which is not there yet: table files as hard links
/// where the file system can, the log and the small files copied. Does not flush and does not stop writers.
absl::Status CopyDatabase(rocksdb::DB& database, const std::string& from, const std::string& to);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_COPY_DATABASE_H_
