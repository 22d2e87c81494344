#ifndef ATOLL_SERVER_WEB_WEB_SERVER_H_
#define ATOLL_SERVER_WEB_WEB_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/clock.h"
#include "common/http/http_daemon.h"
#include "common/log.h"
#include "server/access/access_policy.h"
#include "server/coordinator.h"
#include "server/rpc/server.h"

namespace atl {

struct WebServerOptions {
  std::string address = "127.0.0.1:7604";  // port 0: any free one
  /// With a certificate, any address is allowed.
  Exposure exposure = Exposure::kLoopbackOnly;
  /// Both or neither (PEM). With them it speaks HTTPS only; looked at again every few seconds.
  std::string certificate_file;
  std::string key_file;
  /// See WebApiOptions.
  const AccessPolicy* access = nullptr;
  std::vector<std::string> names;
  std::string token_hint;
  std::function<void(const std::string& peer, const absl::Status& why)> on_denied = {};

  HttpLimits limits;
  /// Time limit for a client to send a request, and again to receive its answer.
  Duration timeout = Seconds(20);
  size_t threads = 3;        // that answer
  size_t max_waiting = 128;  // requests for them
  Duration tick = Seconds(1);
  Duration look_at_files = Seconds(10);
};

/// The built-in web page and its JSON (docs/reference/web.md), on its own threads. Thread-safe.
class WebServer {
 public:
  /// Checks whether Start can listen now, to report its errors before anything else starts.
  static absl::Status CheckAddress(const WebServerOptions& options);

  /// Listens and serves. Coordinator, clock and policy outlive it.
  ///   InvalidArgument  not an address, not loopback without being asked for, certificate and key do not fit
  ///   Unavailable      the port is in use: names it
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const WebServerOptions& options,
                                                          Coordinator* coordinator, const Clock* clock,
                                                          const Logger& log);
  ~WebServer();

  /// The bound address; its port is never 0.
  const BindAddress& address() const;
  /// "https://127.0.0.1:7604/"
  std::string url() const;

  /// Answers requests in progress, closes every connection and joins the threads. Call it before the
  /// coordinator is destroyed. Idempotent.
  void Shutdown();

 private:
  struct Parts;
  explicit WebServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_WEB_SERVER_H_
