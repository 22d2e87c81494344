#ifndef ATOLL_SERVER_RPC_SERVER_H_
#define ATOLL_SERVER_RPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "server/coordinator.h"
#include "server/rpc/server_options.h"

namespace atl {

/// The two ports: data (workers, evaluators, observers) and admin (operators and tools), each with the
/// standard health service and server reflection. Thread-safe.
class RpcServer {
 public:
  /// Whether Start could listen on `address` now: its errors, before anything else is started.
  static absl::Status CheckAddress(const std::string& address, const RpcServerOptions& options);

  /// Listens and serves. `coordinator` and `clock` outlive this.
  ///   InvalidArgument  an address that is none, or not loopback without being asked for
  ///   Unavailable      a port is in use: names it
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options,
                                                          Coordinator* coordinator, const Clock* clock,
                                                          const Logger& log);
  ~RpcServer();

  /// As bound: the ports are never 0.
  const std::string& data_address() const;
  const std::string& admin_address() const;

  /// Health says NOT_SERVING from here on; calls are still answered.
  void SetNotServing();
  /// SetNotServing, ends watchers and uploads, lets other calls in progress end within the grace, hangs up,
  /// cancels the rest, joins all threads. New calls are answered until it hangs up; a client whose call comes
  /// later finds the connection closed. The coordinator should have been shut down before, so that nobody
  /// waits for it and every call is told that it shuts down. Idempotent.
  void Shutdown();

 private:
  struct Parts;
  explicit RpcServer(std::unique_ptr<Parts> parts);
  void AwaitCalls(MonoTime deadline) const;

  const std::unique_ptr<Parts> parts_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_SERVER_H_
