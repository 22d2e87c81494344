#ifndef ATOLL_STORAGE_ROCKSDB_FILE_CACHING_H_
#define ATOLL_STORAGE_ROCKSDB_FILE_CACHING_H_

#include <string>

namespace atl {

/// Whether written bytes stay in the page cache.
enum class FileCaching { kCached, kBypassed };

/// kBypassed where the folder's file system can (O_DIRECT), which some, like older tmpfs, cannot. Leaves no
/// file.
FileCaching ProbeFileCaching(const std::string& folder);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_FILE_CACHING_H_
