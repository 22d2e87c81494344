#ifndef ATOLL_SERVER_RPC_UNARY_H_
#define ATOLL_SERVER_RPC_UNARY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "protos/wire/trace.h"
#include "server/rpc/call_context.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/io_pool.h"

namespace atl {

/// Answers a unary call that was `admitted` (server/rpc/admission.h); else with that status. `handle(const
/// Request&, Reply*)` decodes, makes one call, encodes, and returns an absl::Status. It runs on `pool`,
/// because it may block and gRPC's threads must not. `call` outlives it. What is peculiar to gRPC stands
/// here, once (after tensorstore's kvstore/tsgrpc/handler_template.h).
template <typename Request, typename Reply, typename Handle>
grpc::ServerUnaryReactor* RunUnary(grpc::CallbackServerContext* context, const CallContext& call,
                                   const absl::Status& admitted, IoPool* pool, const Request* request,
                                   Reply* reply, Handle handle) {
  // The default reactor, the request and the reply live until Finish; a cancelled call still has to be
  // finished.
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  Moved(call, context->peer());
  const auto count = [&call, context](const absl::Status& outcome) {
    return CountRejection(call, outcome, [context] { return std::string(context->peer()); });
  };
  if (!admitted.ok()) {
    reactor->Finish(ToGrpc(count(admitted)));
    return reactor;
  }
  if (call.open_unary != nullptr) ++*call.open_unary;
  const auto finish = [reactor, open = call.open_unary](const grpc::Status& status) {
    reactor->Finish(status);
    if (open != nullptr) --*open;
  };
  const bool posted =
      pool->Post([=, handle = std::move(handle), trace = ReceivedTrace(context->client_metadata())] {
        const ScopedTrace scope(trace);
        if (context->IsCancelled()) {
          finish(grpc::Status::CANCELLED);  // nobody waits for the answer any more
          return;
        }
        finish(ToGrpc(count(handle(*request, reply))));
      });
  if (!posted) finish(ToGrpc(count(Overloaded())));
  return reactor;
}

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_UNARY_H_
