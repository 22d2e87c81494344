#include "server/run/run_faults.h"

namespace atl {

void RunFaults::SetStorageError(const std::string& where, const std::string& error, MonoTime now,
                                Effects& effects) {
  MutexLock lock(&core_.mutex);
  const bool failed_before = !storage_errors_.empty();
  if (error.empty()) {
    storage_errors_.erase(where);
  } else {
    storage_errors_.try_emplace(where, StorageFailure{.error = {}, .since = now}).first->second.error = error;
  }
  if (failed_before == !storage_errors_.empty()) return;
  if (failed_before) {
    effects.Event(EventKind::kStorageRecovered, "",
                  "the data directory can be written again; nothing was lost");
  } else {
    effects.Event(EventKind::kStorageFailing, "", error);
  }
}

void RunFaults::SetFault(const std::string& fault) {
  MutexLock lock(&core_.mutex);
  fault_ = fault;
}

std::string RunFaults::StorageError() const {
  return storage_errors_.empty() ? std::string() : storage_errors_.begin()->second.error;
}

}  // namespace atl
