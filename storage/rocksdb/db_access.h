#ifndef ATOLL_STORAGE_ROCKSDB_DB_ACCESS_H_
#define ATOLL_STORAGE_ROCKSDB_DB_ACCESS_H_

#include <cstdint>

namespace atl {

/// How a database is opened. kReadOnly changes nothing on disk and takes no lock, so that a checkpoint stays
/// what its manifest says. kCreate makes the database if it is not there; with the others, a database without
/// its files is an error: RocksDB would put an empty one in its place and remove the files of the old one.
enum class DbAccess : uint8_t { kReadWrite, kReadOnly, kCreate };

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_DB_ACCESS_H_
