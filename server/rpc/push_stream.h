#ifndef ATOLL_SERVER_RPC_PUSH_STREAM_H_
#define ATOLL_SERVER_RPC_PUSH_STREAM_H_

#include "atoll/v1/coordinator.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call_context.h"
#include "server/rpc/receiver.h"

namespace atoll {

/// The messages of one Push, as an upload (the sink of an UploadReactor). How chunks are taken out of
/// messages is known here and nowhere else.
class PushStream {
 public:
  explicit PushStream(Coordinator* coordinator, FragmentHeads* heads)
      : receiver_(coordinator), heads_(heads) {}

  absl::Status OnMessage(const v1::PushChunk& message);
  bool complete() const { return receiver_.complete(); }
  absl::Status OnEnd(v1::PushReply* reply);

 private:
  absl::Status OnHeader(const v1::PushChunk& message);

  PushReceiver receiver_;
  FragmentHeads* const heads_;
  FragmentId fragment_;
  bool begun_ = false;
};

grpc::ServerReadReactor<v1::PushChunk>* StartPushStream(const CallContext& call,
                                                        grpc::CallbackServerContext* context,
                                                        v1::PushReply* reply);

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_PUSH_STREAM_H_
