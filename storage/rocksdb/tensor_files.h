#ifndef ATOLL_STORAGE_ROCKSDB_TENSOR_FILES_H_
#define ATOLL_STORAGE_ROCKSDB_TENSOR_FILES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "storage/rocksdb/file_caching.h"
#include "storage/rocksdb/shard_db.h"

namespace atl {

/// <fragment:4><version:8><vector:1><chunk:4>, big-endian.
std::string TensorKey(FragmentId fragment, Version version, uint8_t vector, uint32_t chunk);
/// The smallest key of a version.
std::string TensorKeysBegin(FragmentId fragment, Version version);

/// What TensorKeysBegin was given, from a key; none when the key is too short.
std::optional<std::pair<FragmentId, Version>> VersionOfTensorKey(std::string_view key);

/// Writes the values into finished, synced SST files of at most kMaxTensorFileBytes each (one value more at
/// most), whose paths `new_path` gives, and returns them; none are left after an error.
absl::StatusOr<std::vector<std::string>> WriteTensorFiles(FragmentId fragment, Version version,
                                                          const std::vector<ChunkValue>& values,
                                                          FileCaching caching,
                                                          const std::function<std::string()>& new_path);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_TENSOR_FILES_H_
