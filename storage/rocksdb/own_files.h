#ifndef ATOLL_STORAGE_ROCKSDB_OWN_FILES_H_
#define ATOLL_STORAGE_ROCKSDB_OWN_FILES_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "storage/rocksdb/data_dir.h"

// The names that a coordinator writes into a data directory. A file with another name belongs to somebody
// else: a folder with such a file is not begun as a run, and no clean-up removes it. Thread-safe.

namespace atl {

/// Finds a file or folder that no coordinator writes at this place, at any depth, and returns its path;
/// nullopt: every entry is ours by name and type. At the top, hidden entries and lost+found do not count:
/// new volumes have them. Symbolic links are followed at the top only. Fails when a folder cannot be listed.
absl::StatusOr<std::optional<std::string>> FindForeign(const DataDir& dir);

/// The same for one folder below checkpoints/. A link is foreign, and so is everything that a run adds to a
/// checkpoint once it is served.
absl::StatusOr<std::optional<std::string>> FindForeignInCheckpoint(const std::string& folder);

/// Whether a shard writes a file of this name into sst/.
bool IsStagedFile(std::string_view name);

/// Whether this is a note at the top of a data directory that was being written when its process ended.
bool IsUnfinishedNote(std::string_view name);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_OWN_FILES_H_
