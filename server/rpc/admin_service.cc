#include "server/rpc/admin_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/confirmation.h"
#include "server/admin/admin_control.h"
#include "server/rpc/admission.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/encode.h"
#include "server/rpc/encode_admin.h"
#include "server/rpc/pumped_stream.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/unary.h"

namespace atl {
namespace {

/// Sends what is read as messages.
class ParameterMessages final : public ParameterSink {
 public:
  explicit ParameterMessages(const PumpedStream<v1::ParametersChunk>::Send& send) : send_(send) {}

  bool Begin(const ParametersView& view) override {
    v1::ParametersChunk first;
    status_ = EncodeParameters(view, first.mutable_header());
    return status_.ok() && send_(first);
  }
  bool Take(const ParameterPiece& piece) override {
    EncodePiece(piece, &chunk_);
    return send_(chunk_);
  }
  const absl::Status& status() const { return status_; }

 private:
  const PumpedStream<v1::ParametersChunk>::Send& send_;
  v1::ParametersChunk chunk_;
  absl::Status status_;
};

}  // namespace

template <typename Request, typename Reply, typename Handle>
AdminService::Reactor* AdminService::Answer(IoPool* pool, Context* context, const Request* request,
                                            Reply* reply, Handle handle) {
  return RunUnary(context, call_, AdmitToAdmin(call_, *context, *request), pool, request, reply,
                  std::move(handle));
}

template <typename Request, typename Reply>
AdminService::Reactor* AdminService::Act(Context* context, const Request* request, Reply* reply,
                                         absl::Status (AdminActions::*act)(const AdminCaller&, const Request&,
                                                                           Reply*)) {
  return Answer(call_.admin, context, request, reply,
                [this, caller = CallerOf(call_, *context), act](const Request& in, Reply* out) {
                  return (actions_.*act)(caller, in, out);
                });
}

AdminService::Reactor* AdminService::GetStatus(Context* context, const v1::GetStatusRequest* request,
                                               v1::GetStatusReply* reply) {
  return Answer(call_.calls, context, request, reply,
                [this](const v1::GetStatusRequest& in, v1::GetStatusReply* out) -> absl::Status {
                  if (in.history() > kMaxStatusHistory) {
                    return absl::InvalidArgumentError(absl::StrFormat("history: %d is above the bound of %d",
                                                                      in.history(), kMaxStatusHistory));
                  }
                  out->set_security_warning(call_.security_warning);
                  out->set_unix_nanos(call_.clock->WallNow().time_since_epoch().count());
                  return EncodeStatus(call_.coordinator->GetStatus(in.history()), out);
                });
}

AdminService::Reactor* AdminService::ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                                                 v1::ListWorkersReply* reply) {
  return Answer(call_.calls, context, request, reply,
                [this](const v1::ListWorkersRequest& in, v1::ListWorkersReply* out) -> absl::Status {
                  // Who is asked for by name may have left.
                  const bool one = !in.worker().empty();
                  for (const WorkerView& worker : call_.coordinator->ListWorkers(one || in.all())) {
                    if (!one || worker.name == in.worker()) EncodeWorker(worker, out->add_workers());
                  }
                  if (!one || out->workers_size() > 0) return absl::OkStatus();
                  return absl::NotFoundError(
                      absl::StrFormat("no worker of the name '%s' was ever seen in this run", in.worker()));
                });
}

AdminService::Reactor* AdminService::GetMetrics(Context* context, const v1::GetMetricsRequest* request,
                                                v1::GetMetricsReply* reply) {
  return Answer(call_.calls, context, request, reply,
                [this](const v1::GetMetricsRequest&, v1::GetMetricsReply* out) -> absl::Status {
                  EncodeMetrics(admin().GetMetrics(), out);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::ListConfigs(Context* context, const v1::ListConfigsRequest* request,
                                                 v1::ListConfigsReply* reply) {
  return Answer(call_.calls, context, request, reply,
                [this](const v1::ListConfigsRequest&, v1::ListConfigsReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigView> configs, admin().ListConfigs());
                  for (const ConfigView& config : configs) {
                    ATOLL_RETURN_IF_ERROR(EncodeConfig(config, out->add_configs()));
                  }
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::ListRounds(Context* context, const v1::ListRoundsRequest* request,
                                                v1::ListRoundsReply* reply) {
  // Reads the disk once a round: not beside heartbeats.
  return Answer(call_.admin, context, request, reply,
                [this](const v1::ListRoundsRequest& in, v1::ListRoundsReply* out) -> absl::Status {
                  const uint32_t limit = in.limit() == 0 ? kDefaultListedRounds : in.limit();
                  ATOLL_ASSIGN_OR_RETURN(
                      const RoundListView list,
                      admin().ListRounds(FragmentId(in.fragment()), Version(in.after_version()), limit));
                  EncodeRounds(list, out);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::ListConfirmations(Context* context,
                                                       const v1::ListConfirmationsRequest* request,
                                                       v1::ConfirmationPage* reply) {
  // Reads the disk once a version.
  return Answer(call_.admin, context, request, reply,
                [this](const v1::ListConfirmationsRequest& in, v1::ConfirmationPage* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const ConfirmationPage page,
                                         call_.coordinator->GetConfirmations(DecodeConfirmationQuery(in)));
                  *out = ConfirmationPageToProto(page);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::GetLauncher(Context* context, const v1::GetLauncherRequest* request,
                                                 v1::LauncherStatus* reply) {
  return Answer(call_.calls, context, request, reply,
                [this](const v1::GetLauncherRequest&, v1::LauncherStatus* out) -> absl::Status {
                  EncodeLauncher(admin().Launched(), out);
                  return absl::OkStatus();
                });
}

AdminService::Reactor* AdminService::ListCheckpoints(Context* context,
                                                     const v1::ListCheckpointsRequest* request,
                                                     v1::ListCheckpointsReply* reply) {
  return Answer(call_.admin, context, request, reply,
                [this](const v1::ListCheckpointsRequest& in, v1::ListCheckpointsReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const std::vector<CheckpointView> found,
                                         admin().ListCheckpoints(in.check()));
                  for (const CheckpointView& view : found) EncodeCheckpoint(view, out->add_checkpoints());
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<v1::MetricPoint>* AdminService::ExportMetrics(
    Context* context, const v1::ExportMetricsRequest* request) {
  using Stream = PumpedStream<v1::MetricPoint>;
  return Stream::Start(call_, call_.admin, context, AdmitToAdmin(call_, *context, *request),
                       [this](const Stream::Send& send) {
                         return admin().ExportMetrics([&send](const MetricPointView& point) {
                           v1::MetricPoint message;
                           EncodePoint(point, &message);
                           return send(message);
                         });
                       });
}

grpc::ServerWriteReactor<v1::VerifyProgress>* AdminService::Verify(Context* context,
                                                                   const v1::VerifyRequest* request) {
  using Stream = PumpedStream<v1::VerifyProgress>;
  std::optional<Version> version;
  if (request->has_version()) version = Version(request->version());
  return Stream::Start(call_, call_.admin, context, AdmitToAdmin(call_, *context, *request),
                       [this, version](const Stream::Send& send) {
                         return admin().Verify(version, [&send](const VerifyView& view) {
                           v1::VerifyProgress message;
                           EncodeVerify(view, &message);
                           return send(message);
                         });
                       });
}

grpc::ServerWriteReactor<v1::ParametersChunk>* AdminService::ReadParameters(
    Context* context, const v1::ReadParametersRequest* request) {
  using Stream = PumpedStream<v1::ParametersChunk>;
  return Stream::Start(
      call_, call_.admin, context, AdmitToAdmin(call_, *context, *request),
      [this, call = DecodeReadParameters(*request)](const Stream::Send& send) -> absl::Status {
        ATOLL_RETURN_IF_ERROR(call.status());
        ParameterMessages messages(send);
        ATOLL_RETURN_IF_ERROR(admin().ReadParameters(*call, messages));
        return messages.status();
      });
}

AdminService::Reactor* AdminService::ControlRun(Context* context, const v1::ControlRunRequest* request,
                                                v1::ControlRunReply* reply) {
  return Act(context, request, reply, &AdminActions::ControlRun);
}

AdminService::Reactor* AdminService::SetConfig(Context* context, const v1::SetConfigRequest* request,
                                               v1::SetConfigReply* reply) {
  return Act(context, request, reply, &AdminActions::SetConfig);
}

AdminService::Reactor* AdminService::ExtendRun(Context* context, const v1::ExtendRunRequest* request,
                                               v1::ExtendRunReply* reply) {
  return Act(context, request, reply, &AdminActions::ExtendRun);
}

AdminService::Reactor* AdminService::ControlWorker(Context* context, const v1::ControlWorkerRequest* request,
                                                   v1::ControlWorkerReply* reply) {
  return Act(context, request, reply, &AdminActions::ControlWorker);
}

AdminService::Reactor* AdminService::ScaleWorkers(Context* context, const v1::ScaleWorkersRequest* request,
                                                  v1::ScaleWorkersReply* reply) {
  return Act(context, request, reply, &AdminActions::ScaleWorkers);
}

AdminService::Reactor* AdminService::CreateCheckpoint(Context* context,
                                                      const v1::CreateCheckpointRequest* request,
                                                      v1::CreateCheckpointReply* reply) {
  return Act(context, request, reply, &AdminActions::CreateCheckpoint);
}

AdminService::Reactor* AdminService::RestoreCheckpoint(Context* context,
                                                       const v1::RestoreCheckpointRequest* request,
                                                       v1::RestoreCheckpointReply* reply) {
  return Act(context, request, reply, &AdminActions::RestoreCheckpoint);
}

AdminService::Reactor* AdminService::DeleteCheckpoint(Context* context,
                                                      const v1::DeleteCheckpointRequest* request,
                                                      v1::DeleteCheckpointReply* reply) {
  return Act(context, request, reply, &AdminActions::DeleteCheckpoint);
}

AdminService::Reactor* AdminService::CreateToken(Context* context, const v1::CreateTokenRequest* request,
                                                 v1::CreateTokenReply* reply) {
  return RunUnary(context, call_, AdmitToTokens(call_, *context), call_.admin, request, reply,
                  [this, caller = CallerOf(call_, *context)](const v1::CreateTokenRequest& in,
                                                             v1::CreateTokenReply* out) {
                    return tokens_.Create(caller, in, out);
                  });
}

AdminService::Reactor* AdminService::ListTokens(Context* context, const v1::ListTokensRequest* request,
                                                v1::ListTokensReply* reply) {
  return RunUnary(
      context, call_, AdmitToTokens(call_, *context), call_.calls, request, reply,
      [this](const v1::ListTokensRequest& in, v1::ListTokensReply* out) { return tokens_.List(in, out); });
}

AdminService::Reactor* AdminService::RevokeToken(Context* context, const v1::RevokeTokenRequest* request,
                                                 v1::TokenInfo* reply) {
  return RunUnary(
      context, call_, AdmitToTokens(call_, *context), call_.admin, request, reply,
      [this, caller = CallerOf(call_, *context)](const v1::RevokeTokenRequest& in, v1::TokenInfo* out) {
        return tokens_.Revoke(caller, in, out);
      });
}

}  // namespace atl
