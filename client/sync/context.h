#ifndef ATOLL_CLIENT_SYNC_CONTEXT_H_
#define ATOLL_CLIENT_SYNC_CONTEXT_H_

#include "client/sync/observer.h"
#include "client/sync/time_account.h"
#include "client/sync/worker_status.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/sleeper.h"

namespace atl {

/// What every part of one worker shares. The pointers outlive the parts and are never null, but for
/// `time`.
struct WorkerContext {
  const Clock* clock = nullptr;
  Sleeper* sleeper = nullptr;  // interrupted when the worker is to stop
  WorkerObserver* observer = nullptr;
  WorkerStatus* worker_status = nullptr;
  Logger log;
  TimeAccount* time = nullptr;  // of the thread that uses this context; may be null: nobody counts
};

/// Phase and reason, on the worker status and for the observer.
inline void EnterPhase(const WorkerContext& context, WorkerPhase phase, const std::string& waiting_for = "") {
  context.worker_status->SetPhase(phase, waiting_for);
  context.observer->OnPhase(phase);
}

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_CONTEXT_H_
