#ifndef ATOLL_STORAGE_ROCKSDB_RESTORE_NOTE_H_
#define ATOLL_STORAGE_ROCKSDB_RESTORE_NOTE_H_

#include <memory>
#include <optional>
#include <string>

#include "common/ids.h"
#include "storage/run_store.h"

namespace atl {

/// A file that says which checkpoint is being restored, and from which epoch, so that the next start can tell
/// what became of it. It is removed when what is returned goes, and only then: a killed process leaves it.
/// Best effort, as it is for people: null when it cannot be written.
std::shared_ptr<const void> WriteRestoreNote(const std::string& path, const std::string& checkpoint,
                                             Epoch epoch);

/// The note that a process left. `epoch`: the run's, now.
std::optional<InterruptedRestore> ReadRestoreNote(const std::string& path, Epoch epoch);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_RESTORE_NOTE_H_
