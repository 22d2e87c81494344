#ifndef ATOLL_SERVER_RPC_PULL_STREAM_H_
#define ATOLL_SERVER_RPC_PULL_STREAM_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call_context.h"

namespace atl {

/// Answers one Pull (`request` is a v1::PullRequest): waits for the coordinator's answer, then streams the
/// snapshot, which it keeps alive, reads without a lock and does not copy. Ended with ABORTED when the
/// snapshot is more than one version behind the head.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartPullStream(const CallContext& call,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_PULL_STREAM_H_
