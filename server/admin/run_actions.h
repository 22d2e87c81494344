#ifndef ATOLL_SERVER_ADMIN_RUN_ACTIONS_H_
#define ATOLL_SERVER_ADMIN_RUN_ACTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admin/admin_control.h"
#include "server/admin/admin_locks.h"
#include "server/coordinator_context.h"

namespace atl {

/// Pause, resume, stop, close the round. Thread-safe.
class RunActions {
 public:
  /// Both outlive it.
  RunActions(const CoordinatorContext& context, AdminLocks* locks) : context_(context), locks_(*locks) {}

  /// AdminControl::ControlRun.
  absl::StatusOr<std::string> Control(const AdminCaller& caller, RunAction action, const std::string& reason);

 private:
  absl::StatusOr<std::string> Act(const AdminCaller& caller, RunAction action, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::Status ChangeMode(RunMode mode, const AdminCaller& caller, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);

  const CoordinatorContext& context_;
  AdminLocks& locks_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_RUN_ACTIONS_H_
