#include "server/rpc/admin_actions.h"

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/encode_admin.h"

namespace atl {

absl::Status AdminActions::ControlRun(const AdminCaller& caller, const v1::ControlRunRequest& in,
                                      v1::ControlRunReply* out) {
  ATOLL_ASSIGN_OR_RETURN(const RunAction action, DecodeRunAction(in));
  ATOLL_ASSIGN_OR_RETURN(const std::string done, admin().ControlRun(caller, action, in.reason()));
  out->set_message(done);
  out->set_state(static_cast<v1::RunState>(coordinator_->GetStatus(0).state));
  return absl::OkStatus();
}

absl::Status AdminActions::SetConfig(const AdminCaller& caller, const v1::SetConfigRequest& in,
                                     v1::SetConfigReply* out) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigSetting> settings, DecodeSettings(in));
  ATOLL_ASSIGN_OR_RETURN(const ConfigView config,
                         admin().SetConfig(caller, settings, in.expected_version(), in.dry_run()));
  return EncodeConfig(config, out->mutable_config());
}

absl::Status AdminActions::ExtendRun(const AdminCaller& caller, const v1::ExtendRunRequest& in,
                                     v1::ExtendRunReply* out) {
  ATOLL_ASSIGN_OR_RETURN(const ExtensionView extended,
                         admin().ExtendRun(caller, in.rounds(), in.expected_version(), in.dry_run()));
  EncodeExtension(extended, out);
  return absl::OkStatus();
}

absl::Status AdminActions::ControlWorker(const AdminCaller& caller, const v1::ControlWorkerRequest& in,
                                         v1::ControlWorkerReply* out) {
  ATOLL_ASSIGN_OR_RETURN(const ControlWorkerCall call, DecodeControlWorker(in));
  ATOLL_ASSIGN_OR_RETURN(const std::string done, admin().ControlWorker(caller, call));
  out->set_message(done);
  return absl::OkStatus();
}

absl::Status AdminActions::ScaleWorkers(const AdminCaller& caller, const v1::ScaleWorkersRequest& in,
                                        v1::ScaleWorkersReply* out) {
  const auto add = in.has_add() ? std::optional(in.add()) : std::nullopt;
  const auto target = in.has_target() ? std::optional(in.target()) : std::nullopt;
  ATOLL_ASSIGN_OR_RETURN(const ScaleResult result, admin().ScaleWorkers(caller, add, target));
  EncodeScale(result, out);
  return absl::OkStatus();
}

absl::Status AdminActions::CreateCheckpoint(const AdminCaller& caller, const v1::CreateCheckpointRequest& in,
                                            v1::CreateCheckpointReply* out) {
  ATOLL_ASSIGN_OR_RETURN(const CheckpointView made, admin().CreateCheckpoint(caller, in.name()));
  EncodeCheckpoint(made, out->mutable_checkpoint());
  return absl::OkStatus();
}

absl::Status AdminActions::RestoreCheckpoint(const AdminCaller& caller,
                                             const v1::RestoreCheckpointRequest& in,
                                             v1::RestoreCheckpointReply* out) {
  ATOLL_ASSIGN_OR_RETURN(const RestoreResult restored, admin().RestoreCheckpoint(caller, in.name()));
  EncodeRestore(restored, out);
  return absl::OkStatus();
}

absl::Status AdminActions::DeleteCheckpoint(const AdminCaller& caller, const v1::DeleteCheckpointRequest& in,
                                            v1::DeleteCheckpointReply*) {
  return admin().DeleteCheckpoint(caller, in.name());
}

}  // namespace atl
