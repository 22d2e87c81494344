#ifndef ATOLL_SERVER_RPC_HEALTH_LISTENER_H_
#define ATOLL_SERVER_RPC_HEALTH_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/connection_handoff.h"

namespace grpc {
class CallbackGenericService;
class Server;
}  // namespace grpc

namespace atl {

/// Asked about this service, the health port says SERVING for as long as the process answers at all: for a
/// supervisor that must not kill a coordinator which is still reading its disk.
inline constexpr char kLiveService[] = "live";

/// A plaintext port with the standard health service (grpc.health.v1) and nothing else: no reflection, no
/// call of ours. For a kubelet or a load balancer, which have no certificates. About "" (and the Coordinator
/// service) it says NOT_SERVING until SetServing(true). What it may hold of memory and connections is
/// bounded, so that it may be reachable where the other ports are not. Thread-safe.
class HealthListener {
 public:
  ///   InvalidArgument  not an address
  ///   Unavailable      the port is in use: names it
  static absl::StatusOr<std::unique_ptr<HealthListener>> Start(const std::string& address);
  /// Whether Start could listen now.
  static absl::Status CheckAddress(const std::string& address);
  ~HealthListener();

  /// As bound: the port is never 0.
  const std::string& address() const { return address_; }
  void SetServing(bool serving);

 private:
  HealthListener() = default;

  const SystemClock clock_{};
  // Set by Start, and not changed later.
  std::unique_ptr<grpc::CallbackGenericService> nothing_;  // outlives the server
  std::unique_ptr<grpc::Server> server_;
  ConnectionHandoff handoff_;
  std::unique_ptr<Acceptor> acceptor_;
  std::string address_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_HEALTH_LISTENER_H_
