#include "common/status.h"
#include "server/rpc/admin_answer.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/encode_admin.h"

// What changes something.

namespace atl {

AdminService::Reactor* AdminService::ControlRun(Context* context, const v1::ControlRunRequest* request,
                                                v1::ControlRunReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::ControlRunRequest& in,
                                                           v1::ControlRunReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const RunAction action, DecodeRunAction(in));
                  ATOLL_ASSIGN_OR_RETURN(const std::string done,
                                         admin().ControlRun(caller, action, in.reason()));
                  out->set_message(done);
                  out->set_state(static_cast<v1::RunState>(call_.coordinator->GetStatus(0).state));
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::SetConfig(Context* context, const v1::SetConfigRequest* request,
                                               v1::SetConfigReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::SetConfigRequest& in,
                                                           v1::SetConfigReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigSetting> settings, DecodeSettings(in));
                  ATOLL_ASSIGN_OR_RETURN(
                      const ConfigView config,
                      admin().SetConfig(caller, settings, in.expected_version(), in.dry_run()));
                  return EncodeConfig(config, out->mutable_config());
                });
}

AdminService::Reactor* AdminService::ExtendRun(Context* context, const v1::ExtendRunRequest* request,
                                               v1::ExtendRunReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::ExtendRunRequest& in,
                                                           v1::ExtendRunReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(
                      const ExtensionView extended,
                      admin().ExtendRun(caller, in.rounds(), in.expected_version(), in.dry_run()));
                  EncodeExtension(extended, out);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::ControlWorker(Context* context, const v1::ControlWorkerRequest* request,
                                                   v1::ControlWorkerReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::ControlWorkerRequest& in,
                                                           v1::ControlWorkerReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const ControlWorkerCall call, DecodeControlWorker(in));
                  ATOLL_ASSIGN_OR_RETURN(const std::string done, admin().ControlWorker(caller, call));
                  out->set_message(done);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::ScaleWorkers(Context* context, const v1::ScaleWorkersRequest* request,
                                                  v1::ScaleWorkersReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::ScaleWorkersRequest& in,
                                                           v1::ScaleWorkersReply* out) -> absl::Status {
                  const auto add = in.has_add() ? std::optional(in.add()) : std::nullopt;
                  const auto target = in.has_target() ? std::optional(in.target()) : std::nullopt;
                  ATOLL_ASSIGN_OR_RETURN(const ScaleResult result, admin().ScaleWorkers(caller, add, target));
                  EncodeScale(result, out);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::CreateCheckpoint(Context* context,
                                                      const v1::CreateCheckpointRequest* request,
                                                      v1::CreateCheckpointReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::CreateCheckpointRequest& in,
                                                           v1::CreateCheckpointReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const CheckpointView made,
                                         admin().CreateCheckpoint(caller, in.name()));
                  EncodeCheckpoint(made, out->mutable_checkpoint());
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::RestoreCheckpoint(Context* context,
                                                       const v1::RestoreCheckpointRequest* request,
                                                       v1::RestoreCheckpointReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::RestoreCheckpointRequest& in,
                                                           v1::RestoreCheckpointReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const RestoreResult restored,
                                         admin().RestoreCheckpoint(caller, in.name()));
                  EncodeRestore(restored, out);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::DeleteCheckpoint(Context* context,
                                                      const v1::DeleteCheckpointRequest* request,
                                                      v1::DeleteCheckpointReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context)](const v1::DeleteCheckpointRequest& in,
                                                           v1::DeleteCheckpointReply*) -> absl::Status {
                  return admin().DeleteCheckpoint(caller, in.name());
                });
}

}  // namespace atl
