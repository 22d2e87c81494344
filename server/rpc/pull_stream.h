#ifndef ATOLL_SERVER_RPC_PULL_STREAM_H_
#define ATOLL_SERVER_RPC_PULL_STREAM_H_

#include "atoll/v1/coordinator.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call_context.h"

namespace atoll {

/// Answers one Pull: waits for the coordinator's answer, then streams the snapshot, which it keeps alive and
/// reads without a lock. Ended with ABORTED when the snapshot is more than one version behind the head.
grpc::ServerWriteReactor<v1::PullChunk>* StartPullStream(const CallContext& call,
                                                         grpc::CallbackServerContext* context,
                                                         const v1::PullRequest* request);

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_PULL_STREAM_H_
