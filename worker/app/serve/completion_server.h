#ifndef ATOLL_WORKER_APP_SERVE_COMPLETION_SERVER_H_
#define ATOLL_WORKER_APP_SERVE_COMPLETION_SERVER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/clock.h"
#include "common/http/http_daemon.h"
#include "worker/app/serve/completion_api.h"

namespace atl {

/// Who may reach the server: only this machine, or others too, without encryption.
enum class ServeExposure { kLoopbackOnly, kAnywhere };

struct CompletionServerOptions {
  std::string address = "127.0.0.1:8000";  // port 0: any free one
  ServeExposure exposure = ServeExposure::kLoopbackOnly;
  size_t max_waiting = 64;  // requests for the model
  HttpLimits limits = {.body_bytes = size_t{8} << 20, .skip_gone_clients = true};
  /// Time limit for a client to send a request, and again to receive its answer.
  Duration client_timeout = Seconds(60);
};

/// Serves a CompletionApi over HTTP, on its own threads: one for connections, one for the model. Thread-safe.
class CompletionServer {
 public:
  /// Checks whether Start can listen now, to report its errors before the model is loaded.
  static absl::Status CheckAddress(const CompletionServerOptions& options);

  /// Listens and serves. `api` and `clock` outlive it. InvalidArgument: not an address, or not loopback
  /// without being asked for. Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<CompletionServer>> Start(const CompletionServerOptions& options,
                                                                 CompletionApi* api, const Clock* clock);
  ~CompletionServer();

  /// "http://127.0.0.1:8000"; its port is never 0.
  std::string url() const;

  /// Stops the API, answers what waits, closes every connection and joins the threads. Idempotent.
  void Shutdown();

 private:
  struct Parts;
  explicit CompletionServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_COMPLETION_SERVER_H_
