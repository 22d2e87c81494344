#ifndef ATOLL_SERVER_RPC_COORDINATOR_SERVICE_H_
#define ATOLL_SERVER_RPC_COORDINATOR_SERVICE_H_

#include "atoll/v1/coordinator.grpc.pb.h"
#include "server/rpc/call_context.h"

namespace atl {

/// Push and Pull as bytes, which their streams read and write themselves (protos/wire/chunk_frame.h); every
/// other method as messages.
using RawStreamsService = v1::Coordinator::WithRawCallbackMethod_Push<
    v1::Coordinator::WithRawCallbackMethod_Pull<v1::Coordinator::WithCallbackMethod_Join<
        v1::Coordinator::WithCallbackMethod_Heartbeat<v1::Coordinator::WithCallbackMethod_SeedParameters<
            v1::Coordinator::WithCallbackMethod_GetPushStatus<
                v1::Coordinator::WithCallbackMethod_WatchRun<v1::Coordinator::WithCallbackMethod_Leave<
                    v1::Coordinator::WithCallbackMethod_GetConfirmations<v1::Coordinator::Service>>>>>>>>>;

/// The data port's service: decodes a call, makes it, encodes the answer.
class CoordinatorService final : public RawStreamsService {
 public:
  explicit CoordinatorService(const CallContext& call) : call_(call) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                 v1::JoinReply* reply) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatReply* reply) override;
  grpc::ServerReadReactor<v1::SeedChunk>* SeedParameters(grpc::CallbackServerContext* context,
                                                         v1::SeedReply* reply) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Pull(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* reply) override;
  grpc::ServerUnaryReactor* GetPushStatus(grpc::CallbackServerContext* context,
                                          const v1::GetPushStatusRequest* request,
                                          v1::GetPushStatusReply* reply) override;
  grpc::ServerWriteReactor<v1::RunEvent>* WatchRun(grpc::CallbackServerContext* context,
                                                   const v1::WatchRunRequest* request) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveReply* reply) override;
  grpc::ServerUnaryReactor* GetConfirmations(grpc::CallbackServerContext* context,
                                             const v1::GetConfirmationsRequest* request,
                                             v1::ConfirmationPage* reply) override;

 private:
  /// Every unary call, once its caller was admitted.
  template <typename Request, typename Reply, typename Handle>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Request* request, Reply* reply,
                                   Handle handle);
  absl::Status AnswerHeartbeat(const v1::HeartbeatRequest& request, v1::HeartbeatReply* reply);
  void Saw(const std::vector<FragmentHead>& fragments);

  const CallContext call_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_COORDINATOR_SERVICE_H_
