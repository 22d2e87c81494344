#ifndef ATOLL_SERVER_RPC_LISTENER_H_
#define ATOLL_SERVER_RPC_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/clock.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/connection_handoff.h"
#include "server/rpc/server_options.h"

namespace atl {

/// One listening gRPC server with one service of ours, health and reflection.
struct Listener {
  std::unique_ptr<grpc::Server> server;
  ConnectionHandoff handoff;
  std::unique_ptr<Acceptor> acceptor;  // stopped before the server is shut down
  BindAddress address;                 // as bound
};

/// What both ports may hold together: it narrows windows, and bounds the threads of synchronous services.
void SetQuota(const RpcServerOptions& options, grpc::ResourceQuota& quota);

/// Whether Listen could do it now.
absl::Status CheckListenable(const std::string& address, const RpcServerOptions& options);

struct PortSpec {
  std::string address;
  std::string name;          // as connections are counted: "data", "admin"
  std::string service_name;  // what health is asked for
  ConnectionLimits limits = {};
  const grpc::ResourceQuota* quota = nullptr;  // of all ports; outlives the server
};

/// `service`, `progress` and `clock` outlive the server. Errors as RpcServer::Start.
absl::StatusOr<Listener> Listen(const PortSpec& port, const RpcServerOptions& options, grpc::Service* service,
                                ConnectionProgress* progress, const Clock* clock);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_LISTENER_H_
