#ifndef ATOLL_SERVER_RUN_RUN_FAULTS_H_
#define ATOLL_SERVER_RUN_RUN_FAULTS_H_

#include <map>
#include <string>

#include "common/clock.h"
#include "server/run/run_core.h"

namespace atl {

/// What keeps the run from going on: writes that fail, and what only an operator can mend. Thread-safe.
class RunFaults {
 public:
  struct StorageFailure {
    std::string error;  // the latest
    MonoTime since;
  };

  /// `core` outlives it.
  explicit RunFaults(RunCore& core) : core_(core) {}

  /// What fails now in this kind of write ("commit of fragment 0"); empty: nothing. Announces the change.
  void SetStorageError(const std::string& where, const std::string& error, MonoTime now, Effects& effects);
  /// The run cannot go on without an operator.
  void SetFault(const std::string& fault);

  // Under the lock.
  /// The run goes on from other contents.
  void ClearFault() ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) { fault_.clear(); }
  const std::string& fault() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) { return fault_; }
  /// Empty: the data directory can be written.
  std::string StorageError() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// By kind of write.
  const std::map<std::string, StorageFailure>& storage_errors() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) {
    return storage_errors_;
  }

 private:
  RunCore& core_;
  std::map<std::string, StorageFailure> storage_errors_ ABSL_GUARDED_BY(core_.mutex);
  std::string fault_ ABSL_GUARDED_BY(core_.mutex);
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_FAULTS_H_
