#ifndef ATOLL_SERVER_RPC_ADMIN_SERVICE_H_
#define ATOLL_SERVER_RPC_ADMIN_SERVICE_H_

#include "atoll/v1/admin.grpc.pb.h"
#include "server/rpc/admin_actions.h"
#include "server/rpc/call_context.h"
#include "server/rpc/token_actions.h"

namespace atl {

/// The admin port's service. Looking is quick and runs with the short calls; what may take long (checkpoints,
/// the launcher, verification) has threads of its own, so that it is never in the way of a heartbeat.
class AdminService final : public v1::Admin::CallbackService {
 public:
  explicit AdminService(const CallContext& call) : call_(call), actions_(call.coordinator), tokens_(call_) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  // Looking.
  Reactor* GetStatus(Context* context, const v1::GetStatusRequest* request,
                     v1::GetStatusReply* reply) override;
  Reactor* ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                       v1::ListWorkersReply* reply) override;
  Reactor* GetMetrics(Context* context, const v1::GetMetricsRequest* request,
                      v1::GetMetricsReply* reply) override;
  Reactor* ListConfigs(Context* context, const v1::ListConfigsRequest* request,
                       v1::ListConfigsReply* reply) override;
  Reactor* ListRounds(Context* context, const v1::ListRoundsRequest* request,
                      v1::ListRoundsReply* reply) override;
  Reactor* ListConfirmations(Context* context, const v1::ListConfirmationsRequest* request,
                             v1::ConfirmationPage* reply) override;
  Reactor* GetLauncher(Context* context, const v1::GetLauncherRequest* request,
                       v1::LauncherStatus* reply) override;
  Reactor* ListCheckpoints(Context* context, const v1::ListCheckpointsRequest* request,
                           v1::ListCheckpointsReply* reply) override;
  grpc::ServerWriteReactor<v1::MetricPoint>* ExportMetrics(Context* context,
                                                           const v1::ExportMetricsRequest* request) override;
  grpc::ServerWriteReactor<v1::VerifyProgress>* Verify(Context* context,
                                                       const v1::VerifyRequest* request) override;

  grpc::ServerWriteReactor<v1::ParametersChunk>* ReadParameters(
      Context* context, const v1::ReadParametersRequest* request) override;

  // Doing.
  Reactor* ControlRun(Context* context, const v1::ControlRunRequest* request,
                      v1::ControlRunReply* reply) override;
  Reactor* SetConfig(Context* context, const v1::SetConfigRequest* request,
                     v1::SetConfigReply* reply) override;
  Reactor* ExtendRun(Context* context, const v1::ExtendRunRequest* request,
                     v1::ExtendRunReply* reply) override;
  Reactor* ControlWorker(Context* context, const v1::ControlWorkerRequest* request,
                         v1::ControlWorkerReply* reply) override;
  Reactor* ScaleWorkers(Context* context, const v1::ScaleWorkersRequest* request,
                        v1::ScaleWorkersReply* reply) override;
  Reactor* CreateToken(Context* context, const v1::CreateTokenRequest* request,
                       v1::CreateTokenReply* reply) override;
  Reactor* ListTokens(Context* context, const v1::ListTokensRequest* request,
                      v1::ListTokensReply* reply) override;
  Reactor* RevokeToken(Context* context, const v1::RevokeTokenRequest* request,
                       v1::TokenInfo* reply) override;
  Reactor* CreateCheckpoint(Context* context, const v1::CreateCheckpointRequest* request,
                            v1::CreateCheckpointReply* reply) override;
  Reactor* RestoreCheckpoint(Context* context, const v1::RestoreCheckpointRequest* request,
                             v1::RestoreCheckpointReply* reply) override;
  Reactor* DeleteCheckpoint(Context* context, const v1::DeleteCheckpointRequest* request,
                            v1::DeleteCheckpointReply* reply) override;

 private:
  /// Every unary call but those on tokens, once its caller was admitted.
  template <typename Request, typename Reply, typename Handle>
  Reactor* Answer(IoPool* pool, Context* context, const Request* request, Reply* reply, Handle handle);
  /// One that changes something.
  template <typename Request, typename Reply>
  Reactor* Act(Context* context, const Request* request, Reply* reply,
               absl::Status (AdminActions::*act)(const AdminCaller&, const Request&, Reply*));
  AdminControl& admin() { return call_.coordinator->admin(); }

  const CallContext call_;
  AdminActions actions_;
  TokenActions tokens_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ADMIN_SERVICE_H_
