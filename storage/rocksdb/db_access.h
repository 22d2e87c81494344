#ifndef ATOLL_STORAGE_ROCKSDB_DB_ACCESS_H_
#define ATOLL_STORAGE_ROCKSDB_DB_ACCESS_H_

#include <cstdint>

namespace atoll {

/// How a database is opened. kReadOnly changes nothing on disk and takes no lock, so that a checkpoint stays
/// what its manifest says.
enum class DbAccess : uint8_t { kReadWrite, kReadOnly };

}  // namespace atoll

#endif  // ATOLL_STORAGE_ROCKSDB_DB_ACCESS_H_
