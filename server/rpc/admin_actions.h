#ifndef ATOLL_SERVER_RPC_ADMIN_ACTIONS_H_
#define ATOLL_SERVER_RPC_ADMIN_ACTIONS_H_

#include "absl/status/status.h"
#include "atoll/v1/admin.pb.h"
#include "server/admin/admin_control.h"
#include "server/coordinator.h"

namespace atl {

/// The admin port's calls that change something, from message to message. Thread-safe; a call may block as
/// AdminControl's do.
class AdminActions {
 public:
  /// `coordinator` outlives it.
  explicit AdminActions(Coordinator* coordinator) : coordinator_(coordinator) {}

  absl::Status ControlRun(const AdminCaller& caller, const v1::ControlRunRequest& in,
                          v1::ControlRunReply* out);
  absl::Status SetConfig(const AdminCaller& caller, const v1::SetConfigRequest& in, v1::SetConfigReply* out);
  absl::Status ExtendRun(const AdminCaller& caller, const v1::ExtendRunRequest& in, v1::ExtendRunReply* out);
  absl::Status ControlWorker(const AdminCaller& caller, const v1::ControlWorkerRequest& in,
                             v1::ControlWorkerReply* out);
  absl::Status ScaleWorkers(const AdminCaller& caller, const v1::ScaleWorkersRequest& in,
                            v1::ScaleWorkersReply* out);
  absl::Status CreateCheckpoint(const AdminCaller& caller, const v1::CreateCheckpointRequest& in,
                                v1::CreateCheckpointReply* out);
  absl::Status RestoreCheckpoint(const AdminCaller& caller, const v1::RestoreCheckpointRequest& in,
                                 v1::RestoreCheckpointReply* out);
  absl::Status DeleteCheckpoint(const AdminCaller& caller, const v1::DeleteCheckpointRequest& in,
                                v1::DeleteCheckpointReply*);

 private:
  AdminControl& admin() { return coordinator_->admin(); }

  Coordinator* const coordinator_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ADMIN_ACTIONS_H_
