#ifndef ATOLL_CLIENT_SYNC_BACKGROUND_REJOIN_H_
#define ATOLL_CLIENT_SYNC_BACKGROUND_REJOIN_H_

#include "absl/status/status.h"
#include "client/sync/exchange_runner.h"
#include "client/sync/session.h"
#include "common/mutex.h"

namespace atl {

/// Joins again beside the training when the coordinator has forgotten the worker: the coordinator may be away
/// for long. The training thread's, apart from the Join itself.
class BackgroundRejoin {
 public:
  /// The runner has ended its work (ExchangeRunner::Finish) before this object ends.
  BackgroundRejoin(Session* session, ExchangeRunner* runner) : session_(session), runner_(runner) {}

  /// Follows what heartbeats learnt about the membership. An error that ends the loop: a final refusal, or
  /// the failure of the last Join.
  absl::Status Check(const WorkerCommands& commands) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Session* const session_;
  ExchangeRunner* const runner_;
  Mutex mutex_;
  bool under_way_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_BACKGROUND_REJOIN_H_
