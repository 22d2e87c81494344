#ifndef ATOLL_SERVER_ADMIN_WORKER_ACTIONS_H_
#define ATOLL_SERVER_ADMIN_WORKER_ACTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admin/admin_control.h"
#include "server/admin/admin_locks.h"
#include "server/coordinator_context.h"

namespace atl {

/// Drain, restart, resync; evict, ban, forget; scale. A launcher may take minutes to answer (Kubernetes,
/// while its API is away): only actions on launched workers wait for that. Thread-safe.
class WorkerActions {
 public:
  /// All outlive it. `launcher` may be null: nobody starts workers.
  WorkerActions(const CoordinatorContext& context, AdminLocks* locks, Launcher* launcher)
      : context_(context), locks_(*locks), launcher_(launcher) {}

  /// AdminControl::ControlWorker, ScaleWorkers and WantedWorkers.
  absl::StatusOr<std::string> Control(const AdminCaller& caller, const ControlWorkerCall& call);
  absl::StatusOr<ScaleResult> ScaleWorkers(const AdminCaller& caller, std::optional<uint32_t> add,
                                           std::optional<uint32_t> target);
  uint32_t Wanted() const;
  /// The launcher's view, with kAbsent for processes that run on as no member. There is a launcher.
  LauncherView Launched() const;

 private:
  /// Whether this worker was heard of since its process started, `age` ago.
  bool HasJoinedIn(const LaunchedWorker& worker) const;
  /// What is to be said when the launcher is starting this worker already; empty: it may be restarted.
  std::string AlreadyStarting(const WorkerName& name) const;
  absl::StatusOr<std::string> Act(const ControlWorkerCall& call, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<std::string> SendCommand(const ControlWorkerCall& call, WorkerCommand command,
                                          const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<std::string> ActAlone(const ControlWorkerCall& call, const std::string& why)
      ABSL_LOCKS_EXCLUDED(locks_.launching, locks_.state);
  absl::StatusOr<std::string> Restart(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.launching) ABSL_LOCKS_EXCLUDED(locks_.state);
  absl::StatusOr<std::string> RestartByItself(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.launching, locks_.state);
  absl::StatusOr<std::string> RestartFromOutside(const WorkerName& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.launching) ABSL_LOCKS_EXCLUDED(locks_.state);
  /// Whether the launcher must start the worker. False: it lives, and restarts when it is told to.
  absl::StatusOr<bool> MustBeStarted(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.launching, locks_.state);
  absl::Status CheckPartitions(uint64_t wanted, std::string_view field) const;
  /// FailedPrecondition for a wanted worker of the launcher that was never a member.
  absl::Status CheckHasJoined(const WorkerName& name) const;
  absl::StatusOr<std::string> Drain(const ControlWorkerCall& call, const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::Status RememberWorkers(uint32_t target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  /// Records that drained workers are wanted again: they may not join before the coordinator's next start.
  void RecordCancelledDrains() ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  /// Of what the launcher does already: empty, or what to add to the answer when it could not be recorded.
  std::string NoteWorkers(uint32_t target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::Status KeepControl(const ControlEntry& control) ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<std::string> Forget(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<std::string> ForgetOlderThan(Duration age) ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  /// Records what the action makes of the worker, then does it: a refused action changed nothing.
  absl::Status RecordThen(MemberAction action, const WorkerName& worker,
                          const std::function<absl::Status(Effects&)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<std::string> SetBanned(const ControlWorkerCall& call, const std::string& why, bool banned)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<ScaleResult> Scale(std::optional<uint32_t> add, std::optional<uint32_t> target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.launching) ABSL_LOCKS_EXCLUDED(locks_.state);
  /// Checks the request and records it: `result` then says from and to how many.
  absl::Status RecordScale(std::optional<uint32_t> add, std::optional<uint32_t> target, ScaleResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.launching, locks_.state);

  const CoordinatorContext& context_;
  AdminLocks& locks_;
  Launcher* const launcher_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_WORKER_ACTIONS_H_
