#include "server/rpc/admin_service.h"

#include "absl/strings/str_format.h"
#include "server/rpc/decode.h"
#include "server/rpc/encode.h"
#include "server/rpc/unary.h"

namespace atoll {

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext* context,
                                                  const v1::GetStatusRequest* request,
                                                  v1::GetStatusReply* reply) {
  return RunUnary(context, call_.calls, request, reply,
                  [this](const v1::GetStatusRequest& in, v1::GetStatusReply* out) -> absl::Status {
                    if (in.history() > kMaxStatusHistory) {
                      return absl::InvalidArgumentError(absl::StrFormat(
                          "history: %d is above the bound of %d", in.history(), kMaxStatusHistory));
                    }
                    return EncodeStatus(call_.coordinator->GetStatus(in.history()), out);
                  });
}

grpc::ServerUnaryReactor* AdminService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest* request,
                                                    v1::ListWorkersReply* reply) {
  return RunUnary(context, call_.calls, request, reply,
                  [this](const v1::ListWorkersRequest& in, v1::ListWorkersReply* out) -> absl::Status {
                    for (const WorkerView& worker : call_.coordinator->ListWorkers(in.all())) {
                      EncodeWorker(worker, out->add_workers());
                    }
                    return absl::OkStatus();
                  });
}

}  // namespace atoll
