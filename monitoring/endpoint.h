#ifndef ATOLL_MONITORING_ENDPOINT_H_
#define ATOLL_MONITORING_ENDPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/http/http_daemon.h"
#include "monitoring/metrics.h"

namespace atl {

struct MetricsEndpointOptions {
  std::string address = "127.0.0.1:7602";  // port 0: any free one
  HttpLimits limits = {.connections = 256,
                       .connections_per_address = 0,
                       .crowded = 192,
                       .connection_bytes = size_t{16} << 10,
                       .body_bytes = 0,
                       .idle = Seconds(30)};
  /// Time limit for a client to send a request, and again to receive the answer.
  Duration timeout = Seconds(10);
  size_t max_waiting = 256;  // scrapes; more get 503. A connection has at most one
};

/// Answers GET over HTTP until destroyed:
///   /metrics  all series, in the text format that Prometheus scrapes
///   /healthz  "ok" while the process runs, for a liveness probe. Collects nothing and never waits for a
///   scrape.
/// Read-only, without authentication. One thread serves all connections and one collects. Idle, slow and
/// incomplete requests hold no thread; if there are too many, each new connection closes the one that has
/// waited longest. Thread-safe.
class MetricsEndpoint {
 public:
  /// `registry` outlives this.
  ///   InvalidArgument  not an address
  ///   Unavailable      the port is in use: names it
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const MetricsEndpointOptions& options,
                                                                const MetricsRegistry& registry);
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& address,
                                                                const MetricsRegistry& registry) {
    return Start(MetricsEndpointOptions{.address = address}, registry);
  }
  /// Answers the waiting scrapes and joins the threads.
  ~MetricsEndpoint();

  /// The bound address; its port is never 0.
  const BindAddress& address() const;

 private:
  struct Parts;
  explicit MetricsEndpoint(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace atl

#endif  // ATOLL_MONITORING_ENDPOINT_H_
