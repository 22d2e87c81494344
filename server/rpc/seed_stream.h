#ifndef ATOLL_SERVER_RPC_SEED_STREAM_H_
#define ATOLL_SERVER_RPC_SEED_STREAM_H_

#include <utility>

#include "atoll/v1/coordinator.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/access/access_policy.h"
#include "server/rpc/call_context.h"
#include "server/rpc/receiver.h"

namespace atl {

/// The messages of one SeedParameters, as an upload (the sink of an UploadReactor).
class SeedStream {
 public:
  SeedStream(Coordinator* coordinator, Identity who) : receiver_(coordinator), who_(std::move(who)) {}

  /// A manifest may be as long as a message.
  static bool MayBeginWith(const v1::SeedChunk& message) { return message.has_header(); }
  absl::Status OnMessage(const v1::SeedChunk& message);
  bool complete() const { return false; }
  absl::Status OnEnd(v1::SeedReply* reply);

 private:
  absl::Status OnHeader(const v1::SeedChunk& message);

  SeedReceiver receiver_;
  const Identity who_;
  bool begun_ = false;
};

grpc::ServerReadReactor<v1::SeedChunk>* StartSeedStream(const CallContext& call,
                                                        grpc::CallbackServerContext* context,
                                                        v1::SeedReply* reply);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_SEED_STREAM_H_
