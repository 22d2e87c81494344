#ifndef ATOLL_STORAGE_ROCKSDB_FOLDER_BYTES_H_
#define ATOLL_STORAGE_ROCKSDB_FOLDER_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace atl {

/// Bytes of all files below the folder; one that has several names there counts once.
absl::StatusOr<uint64_t> FolderBytes(const std::string& folder);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_FOLDER_BYTES_H_
