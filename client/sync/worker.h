#ifndef ATOLL_CLIENT_SYNC_WORKER_H_
#define ATOLL_CLIENT_SYNC_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "client/sync/context.h"
#include "client/sync/heartbeater.h"
#include "client/sync/metered_connection.h"
#include "client/sync/optimizer_warmup.h"
#include "client/sync/outer_sync.h"
#include "client/sync/peer_audit.h"
#include "client/sync/replica.h"
#include "client/sync/retry_policy.h"
#include "client/sync/retrying_connection.h"
#include "client/sync/session.h"
#include "client/sync/sync_end.h"
#include "client/sync/worker_checkpoint.h"
#include "common/exit_codes.h"
#include "common/mutex.h"
#include "common/signature.h"
#include "common/sleeper.h"

namespace atl {

/// Builds the model, its inner optimizer and its data from what the coordinator said.
using ReplicaFactory = std::function<absl::StatusOr<std::unique_ptr<Replica>>(const JoinedRun& info)>;

struct WorkerOptions {
  JoinCall join;  // without a manifest hash
  OuterSyncOptions outer = {};
  RetryPolicyOptions retry_policy = {};
  std::string state_folder = {};                 // of WorkerCheckpoint; empty: nothing is kept
  std::optional<SigningKey> key = std::nullopt;  // of confirmations; none: none are sent
  PeerAuditOptions peers = {};
  uint64_t backoff_seed = 0;
  int final_heartbeats = 30;  // attempts to deliver the last evaluation before leaving
};

struct WorkerDeps {
  CoordinatorConnection* data = nullptr;     // outlives the worker
  CoordinatorConnection* control = nullptr;  // for heartbeats, a channel of its own; outlives the worker
  const Clock* clock = nullptr;              // outlives the worker
  Sleeper* sleeper = nullptr;                // outlives the worker
  WorkerObserver* observer = nullptr;        // outlives the worker
  Logger log;
  ReplicaFactory make_replica;
};

/// How a worker ended, and what its process should exit with. `status` says why when it is not a clean end.
struct WorkerEnd {
  ExitCode code = ExitCode::kOk;
  absl::Status status = {};
  bool reached = false;  // a coordinator has described its run
  bool restart = false;  // the process is to replace itself by a fresh one with the same arguments
  std::optional<SyncEnd> how = std::nullopt;  // of a clean end, and of one whose last push did not count
};

/// One worker's life: join, build the model, join with it, seed when granted, train (or evaluate) until the
/// run is finished or somebody orders otherwise, leave.
class Worker {
 public:
  static constexpr Duration kGoodbye = Seconds(5);

  Worker(WorkerOptions options, WorkerDeps deps);

  /// Blocks for the whole life; once.
  WorkerEnd Run();

  /// Push what is done of the round, report the evaluation in progress, leave, return from Run. False: there
  /// was neither, and it was made a RequestStop. From any thread.
  bool RequestDrain();
  /// Finish the inner step in progress, leave, return from Run; pushes and other calls in progress are given
  /// up, and the goodbye takes `goodbye` at most. The sleeper must be interrupted besides, so that waits end.
  /// From any thread; again with a shorter goodbye.
  /// `why` is told to the run instead of "stopped"; the first reason counts.
  void RequestStop(Duration goodbye = kGoodbye, std::string_view why = "");

  const WorkerStatus& worker_status() const { return worker_status_; }
  /// Where the time went: of the training thread, and of the exchange threads together. From any thread.
  TimeSpent training_time() const { return training_time_.spent(); }
  TimeSpent exchange_time() const { return exchange_time_.spent(); }

 private:
  absl::StatusOr<SyncEnd> Live();
  /// After a Join: nothing is kept of versions above the heads that it told (WentBack).
  void ForgetLostVersions();
  absl::Status BuildReplica(const JoinedRun& info);
  /// The state of the inner optimizer that an earlier life left.
  absl::Status LoadCheckpoint(const JoinedRun& info);
  /// Its state would be replaced, so that it takes --expect-run to join over it.
  absl::Status CheckOtherRun(const JoinedRun& info) const;
  /// After a Join: to the part of the data that it gave, at the place that was committed.
  absl::Status GoToAssignedData();
  absl::StatusOr<SyncEnd> Synchronise();
  absl::StatusOr<SyncEnd> Overlap(const std::vector<FragmentLayout>& layout, const ResumeState& resume_state);
  WorkerEnd EndOf(const absl::StatusOr<SyncEnd>& end);
  /// `how`: kDrained, or kStopped when the time for it ran out.
  WorkerEnd EndOfDrain(SyncEnd how);
  /// What the run is told of a worker that ends like this.
  std::string LeaveReason(SyncEnd how) const ABSL_LOCKS_EXCLUDED(stop_mutex_);

  const WorkerOptions options_;
  const WorkerDeps deps_;
  TimeAccount training_time_;
  TimeAccounts exchange_time_;
  WorkerStatus worker_status_;
  const WorkerContext context_;
  RetryPolicy retry_policy_;
  MeteredConnection metered_data_;
  MeteredConnection metered_control_;
  RetryingConnection connection_;
  Session session_;
  PeerAudit audit_;
  Heartbeater heartbeater_;
  std::atomic<bool> overlapping_{false};          // waits for versions are beside the training
  std::unique_ptr<WorkerCheckpoint> checkpoint_;  // null: nothing is kept
  OptimizerWarmup optimizer_warmup_;
  std::unique_ptr<Replica> replica_;
  absl::Status not_finite_;  // of the last round that was dropped
  uint64_t built_for_ = 0;   // version of the configuration
  bool reached_ = false;
  mutable Mutex stop_mutex_;
  std::string stopped_because_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_WORKER_H_
