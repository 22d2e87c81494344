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
  /// A client has so long to send a request, and again to take its answer.
  Duration timeout = Seconds(10);
  size_t max_waiting = 256;  // scrapes; more get 503. A connection has at most one
};

/// Answers GET over HTTP until destroyed:
///   /metrics  all series, in the text format that Prometheus scrapes
///   /healthz  "ok" as long as the process runs, for a liveness probe. It collects nothing and never waits
///   for
///             a scrape
/// Read-only, and open to everyone who reaches the address. One thread serves all connections and one
/// collects. Idle, slow and half requests hold no thread; when there are too many of them, each new
/// connection ends the one that has waited longest. Thread-safe.
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
  /// Answers the scrapes that wait, and joins the threads.
  ~MetricsEndpoint();

  /// As bound: the port is never 0.
  const BindAddress& address() const;

 private:
  struct Parts;
  explicit MetricsEndpoint(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace atl

#endif  // ATOLL_MONITORING_ENDPOINT_H_
