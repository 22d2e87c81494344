#ifndef ATOLL_SERVER_RPC_LISTENER_H_
#define ATOLL_SERVER_RPC_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "grpcpp/server.h"
#include "server/rpc/server.h"

namespace atoll {

/// One listening gRPC server with one service of ours, health and reflection.
struct Listener {
  std::unique_ptr<grpc::Server> server;
  BindAddress address;  // as bound
};

/// Whether Listen could do it now.
absl::Status CheckListenable(const std::string& address, const RpcServerOptions& options);

/// `service` outlives the server; `service_name` is what health is asked for. Errors as RpcServer::Start.
absl::StatusOr<Listener> Listen(const std::string& address, const RpcServerOptions& options,
                                grpc::Service* service, const std::string& service_name);

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_LISTENER_H_
