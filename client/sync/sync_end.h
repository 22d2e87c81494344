#ifndef ATOLL_CLIENT_SYNC_SYNC_END_H_
#define ATOLL_CLIENT_SYNC_SYNC_END_H_

#include <cstdint>

#include "client/sync/worker_status.h"

namespace atl {

/// Why a worker's loop ended without an error.
enum class SyncEnd : uint8_t {
  kFinished,      // the run's budget is spent
  kRunStopped,    // an operator ended the run
  kDrained,       // ordered to leave, or SIGTERM: what was done is pushed
  kReconfigured,  // the run has another configuration: build again and continue
  kRestart,       // the same, to come back at once as a fresh process
  kStopped,       // ordered to leave, or out of time: nothing more is pushed
  kDiverged,      // too many rounds in a row were not finite
};

/// The end of a run that has no more versions.
inline SyncEnd EndOfRun(const WorkerCommands& commands) {
  return commands.run_stopped ? SyncEnd::kRunStopped : SyncEnd::kFinished;
}

/// The end of a worker that was told to drain.
inline SyncEnd EndOfDrain(const WorkerCommands& commands) {
  return commands.restart ? SyncEnd::kRestart : SyncEnd::kDrained;
}

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_SYNC_END_H_
