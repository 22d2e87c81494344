#ifndef ATOLL_CLIENT_SYNC_HEARTBEATER_H_
#define ATOLL_CLIENT_SYNC_HEARTBEATER_H_

#include <functional>
#include <memory>
#include <utility>

#include "client/sync/connection.h"
#include "client/sync/context.h"
#include "client/sync/peer_audit.h"
#include "common/mutex.h"
#include "common/periodic_task.h"

namespace atl {

/// Keeps the lease: carries the worker's report to the coordinator and its commands back, from
/// a thread and over a connection of its own, so that neither training nor a large transfer delays it.
/// Thread-safe.
class Heartbeater {
 public:
  /// `connection` is for heartbeats only, and outlives this object. `on_command`, if any, is called on the
  /// heartbeat's thread whenever one brought a command, which is then on the worker status. `audit`, if any,
  /// outlives this object and looks at other workers' confirmations after each heartbeat.
  Heartbeater(CoordinatorConnection* connection, const WorkerContext& context,
              std::function<void()> on_command = nullptr, PeerAudit* audit = nullptr)
      : connection_(connection), context_(context), on_command_(std::move(on_command)), audit_(audit) {}
  ~Heartbeater() { Stop(); }

  /// One heartbeat now, on the calling thread, if the worker is a member. What was learnt is on the worker
  /// status.
  absl::Status Beat() ABSL_LOCKS_EXCLUDED(mutex_);

  /// Beats every `period` until Stop, and every quarter of it while the coordinator does not answer: the
  /// lease must not end because it was away. More often, down to that quarter, when the coordinator names a
  /// lease shorter than three periods. A second call has no effect.
  void Start(Duration period) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Beats soon instead of waiting for the period: there is something to tell.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);
  void Audit(const MemberRef& member, Duration lease);
  void Complain(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  void AdoptLease(Duration lease) ABSL_LOCKS_EXCLUDED(mutex_);

  CoordinatorConnection* const connection_;
  const WorkerContext context_;
  const std::function<void()> on_command_;
  PeerAudit* const audit_;
  Mutex mutex_;
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  int ticks_ ABSL_GUARDED_BY(mutex_) = 0;      // since the last heartbeat
  int due_after_ ABSL_GUARDED_BY(mutex_) = 0;  // ticks
  Duration period_ ABSL_GUARDED_BY(mutex_){};
  std::unique_ptr<PeriodicTask> task_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_HEARTBEATER_H_
