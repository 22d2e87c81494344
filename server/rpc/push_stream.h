#ifndef ATOLL_SERVER_RPC_PUSH_STREAM_H_
#define ATOLL_SERVER_RPC_PUSH_STREAM_H_

#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "protos/wire/chunk_frame.h"
#include "server/access/access_policy.h"
#include "server/rpc/call_context.h"
#include "server/rpc/receiver.h"

namespace atl {

/// The messages of one Push, as an upload (the sink of an UploadReactor). They are read as
/// bytes: data goes from where gRPC received it to the coordinator.
class PushStream {
 public:
  PushStream(Coordinator* coordinator, FragmentHeads* heads, Identity who)
      : receiver_(coordinator), heads_(heads), who_(std::move(who)) {}

  static bool MayBeginWith(const grpc::ByteBuffer& message) {
    return message.Length() <= kMaxChunkHeaderBytes + 64;  // a tag and a length
  }
  absl::Status OnMessage(const grpc::ByteBuffer& message);
  bool complete() const { return receiver_.complete(); }
  absl::Status OnEnd(grpc::ByteBuffer* reply);

 private:
  absl::Status OnHeader(const ChunkFrame& frame);

  PushReceiver receiver_;
  FragmentHeads* const heads_;
  const Identity who_;
  FragmentId fragment_;
  bool begun_ = false;
};

/// `reply` becomes a v1::PushReply.
grpc::ServerReadReactor<grpc::ByteBuffer>* StartPushStream(const CallContext& call,
                                                           grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* reply);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_PUSH_STREAM_H_
