#ifndef ATOLL_SERVER_RPC_ADMIN_ANSWER_H_
#define ATOLL_SERVER_RPC_ADMIN_ANSWER_H_

#include <utility>

#include "server/rpc/admin_service.h"
#include "server/rpc/admission.h"
#include "server/rpc/unary.h"

namespace atl {

template <typename Request, typename Reply, typename Handle>
AdminService::Reactor* AdminService::Answer(IoPool* pool, Context* context, const Request* request,
                                            Reply* reply, Handle handle) {
  return RunUnary(context, call_, AdmitToAdmin(call_, *context, *request), pool, request, reply,
                  std::move(handle));
}

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ADMIN_ANSWER_H_
