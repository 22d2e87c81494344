#ifndef ATOLL_STORAGE_ROCKSDB_STORE_FOLDERS_H_
#define ATOLL_STORAGE_ROCKSDB_STORE_FOLDERS_H_

#include <optional>
#include <string>

namespace atl {

/// The folder of a run in which `path` lies, or nullopt. Such a folder holds only files that a coordinator
/// writes: others make the next start refuse the run, or are removed. Finds the folders of the run in
/// `data_dir`, which need not exist yet, and those of every other run above `path`. `path` need not exist.
/// Follows symbolic links.
std::optional<std::string> StoreFolderAround(const std::string& data_dir, const std::string& path);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_STORE_FOLDERS_H_
