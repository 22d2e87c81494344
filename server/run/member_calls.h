#ifndef ATOLL_SERVER_RUN_MEMBER_CALLS_H_
#define ATOLL_SERVER_RUN_MEMBER_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/run/evaluations.h"
#include "server/run/run_core.h"
#include "server/run/run_progress.h"
#include "server/run/status_views.h"

namespace atl {

/// What workers do as members: Join, Heartbeat, Leave, and the leases that every call renews. Thread-safe.
class MemberCalls {
 public:
  struct Parts {
    RunCore& core;
    Evaluations& evaluations;
    RunProgress& progress;
    const StatusViews& views;
  };
  /// The parts outlive it.
  explicit MemberCalls(const Parts& parts)
      : core_(parts.core), evaluations_(parts.evaluations), progress_(parts.progress), views_(parts.views) {}

  absl::StatusOr<JoinReply> Join(const JoinCall& call, MonoTime now, Effects& effects);
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& caller, const HeartbeatCall& call, MonoTime now,
                                           int64_t unix_ns, Effects& effects);
  absl::Status Leave(const MemberRef& caller, const std::string& reason, MonoTime now, Effects& effects);

  /// The record of a member; nullopt: it is none.
  std::optional<WorkerEntry> Entry(const WorkerName& name) const;
  /// Of the worker's confirmations; empty: it signs nothing.
  std::string PublicKey(const WorkerName& worker) const;
  bool IsTrainer(const WorkerName& worker) const;
  bool IsLiveTrainer(const WorkerName& worker) const;

  // Under the lock.
  /// Checks a member's call and renews its lease.
  absl::Status Renew(const MemberRef& caller, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Members that were silent for a lease are lost.
  void ExpireLeases(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  absl::StatusOr<JoinReply> Admit(const JoinCall& call, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  JoinReply DescribeRun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  JoinReply DescribeToObserver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Adds the manifest of a seeded run.
  void DescribeModel(JoinReply& reply) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// A worker that counts more than --max-ranks times cannot join.
  absl::Status CheckRanks(const JoinCall& call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// For the event of this Join, which has been done: that the ranks of all workers spend the run's tokens in
  /// fewer rounds than planned, and what to do. Empty if they do not, or if this island was told. `before`:
  /// its device in its life before.
  std::string EarlyEndText(const JoinCall& call, const JoinOutcome& outcome,
                           const DeviceDescription& before) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Says it, once, if a member from before a restart has more ranks than count now.
  void NoteDevice(const WorkerName& worker, const DeviceDescription& device, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  void NoteHeartbeat(const WorkerName& worker, const HeartbeatCall& call, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Asked of workers: every third of the lease, or more often.
  Duration HeartbeatInterval() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) {
    return std::min(core_.options.heartbeat, core_.configs.run().round.lease / 3);
  }

  RunCore& core_;
  Evaluations& evaluations_;
  RunProgress& progress_;
  const StatusViews& views_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_MEMBER_CALLS_H_
