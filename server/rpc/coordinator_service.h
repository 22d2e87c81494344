#ifndef ATOLL_SERVER_RPC_COORDINATOR_SERVICE_H_
#define ATOLL_SERVER_RPC_COORDINATOR_SERVICE_H_

#include "atoll/v1/coordinator.grpc.pb.h"
#include "server/rpc/call_context.h"

namespace atoll {

/// The data port's service: decodes a call, makes it, encodes the answer.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  explicit CoordinatorService(const CallContext& call) : call_(call) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                 v1::JoinReply* reply) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatReply* reply) override;
  grpc::ServerReadReactor<v1::SeedChunk>* SeedParameters(grpc::CallbackServerContext* context,
                                                         v1::SeedReply* reply) override;
  grpc::ServerWriteReactor<v1::PullChunk>* Pull(grpc::CallbackServerContext* context,
                                                const v1::PullRequest* request) override;
  grpc::ServerReadReactor<v1::PushChunk>* Push(grpc::CallbackServerContext* context,
                                               v1::PushReply* reply) override;
  grpc::ServerUnaryReactor* GetPushStatus(grpc::CallbackServerContext* context,
                                          const v1::GetPushStatusRequest* request,
                                          v1::GetPushStatusReply* reply) override;
  grpc::ServerWriteReactor<v1::RunEvent>* WatchRun(grpc::CallbackServerContext* context,
                                                   const v1::WatchRunRequest* request) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveReply* reply) override;

 private:
  void Saw(const std::vector<FragmentView>& fragments);

  const CallContext call_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_COORDINATOR_SERVICE_H_
