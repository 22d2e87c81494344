#ifndef ATOLL_SIMULATE_MEMORY_FILES_H_
#define ATOLL_SIMULATE_MEMORY_FILES_H_

#include <functional>
#include <string>

// Files of a simulation, kept in memory. A program that links atoll::memory_files has them behind common/file.h,
// common/durable_file.h, common/mapped_file.h and common/file_lock.h: its objects take the place of
// atoll::native_files, which is an archive and then gives nothing. A simulated worker writes and syncs its state
// thousands of times in a virtual hour; on a disk that is most of the simulation's time.
//
// Not thread-safe: the fibers of one scheduler only. Folders exist as soon as something is in them. A lock is always
// granted: each life of a simulated worker has a folder of its own.

namespace atl {

/// Makes `to` hold what `from` holds, names and bytes that a power cut would lose included. `to` must be empty.
void CopyMemoryFolder(const std::string& from, const std::string& to);

/// The machine of `folder` loses its power. Of what was not synced, `is_lost` decides: called once for the names
/// that were created, renamed or removed since the last FsyncDir, and once for each file with unsynced bytes.
void LoseUnsyncedFiles(const std::string& folder, const std::function<bool()>& is_lost);

/// Forgets every file.
void ClearMemoryFiles();

}  // namespace atl

#endif  // ATOLL_SIMULATE_MEMORY_FILES_H_
