#ifndef ATOLL_CLIENT_RPC_STALL_GUARD_H_
#define ATOLL_CLIENT_RPC_STALL_GUARD_H_

#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "grpcpp/client_context.h"

namespace atl {

/// Cancels a stream that makes no progress. A stream has no deadline: as long as bytes move it may take its
/// time. Thread-safe; the destructor joins its thread.
class StallGuard {
 public:
  /// `context` outlives the guard. The stream is cancelled when `limit` passes without Progress.
  StallGuard(grpc::ClientContext* context, Duration limit);
  ~StallGuard();
  StallGuard(const StallGuard&) = delete;
  StallGuard& operator=(const StallGuard&) = delete;

  /// Something moved; the next thing may take `limit`.
  void Progress(Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  /// The stream was cancelled by this guard.
  bool stalled() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::ClientContext* const context_;
  mutable Mutex mutex_;
  CondVar changed_;
  MonoTime deadline_ ABSL_GUARDED_BY(mutex_);
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_STALL_GUARD_H_
