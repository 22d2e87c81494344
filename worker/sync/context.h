#ifndef ATOLL_WORKER_SYNC_CONTEXT_H_
#define ATOLL_WORKER_SYNC_CONTEXT_H_

#include "common/clock.h"
#include "common/log.h"
#include "common/sleeper.h"
#include "worker/sync/board.h"
#include "worker/sync/observer.h"
#include "worker/sync/time_account.h"

namespace atoll {

/// What every part of one worker shares. The pointers outlive the parts and are never null, but for
/// `time`.
struct WorkerContext {
  const Clock* clock = nullptr;
  Sleeper* sleeper = nullptr;  // interrupted when the worker is to stop
  WorkerObserver* observer = nullptr;
  Board* board = nullptr;
  Logger log;
  TimeAccount* time = nullptr;  // of the thread that uses this context; may be null: nobody counts
};

/// Phase and reason, on the board and for the observer.
inline void EnterPhase(const WorkerContext& context, WorkerPhase phase, const std::string& waiting_for = "") {
  context.board->SetPhase(phase, waiting_for);
  context.observer->OnPhase(phase);
}

}  // namespace atoll

#endif  // ATOLL_WORKER_SYNC_CONTEXT_H_
