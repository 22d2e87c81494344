#ifndef ATOLL_SERVER_RPC_ADMIN_SERVICE_H_
#define ATOLL_SERVER_RPC_ADMIN_SERVICE_H_

#include "atoll/v1/admin.grpc.pb.h"
#include "server/rpc/call_context.h"

namespace atoll {

/// The admin port's service.
class AdminService final : public v1::Admin::CallbackService {
 public:
  explicit AdminService(const CallContext& call) : call_(call) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusReply* reply) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersReply* reply) override;

 private:
  const CallContext call_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_ADMIN_SERVICE_H_
