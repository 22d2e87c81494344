#ifndef ATOLL_SERVER_RPC_WATCH_STREAM_H_
#define ATOLL_SERVER_RPC_WATCH_STREAM_H_

#include "atoll/v1/coordinator.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call_context.h"

namespace atl {

/// Answers one WatchRun: the run's events, until the watcher goes, the server shuts down (UNAVAILABLE), or
/// the watcher falls so far behind that it is asked to watch again from the last event that it got (ABORTED).
grpc::ServerWriteReactor<v1::RunEvent>* StartWatchStream(const CallContext& call,
                                                         grpc::CallbackServerContext* context,
                                                         const v1::WatchRunRequest* request);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_WATCH_STREAM_H_
