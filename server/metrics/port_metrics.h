#ifndef ATOLL_SERVER_METRICS_PORT_METRICS_H_
#define ATOLL_SERVER_METRICS_PORT_METRICS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "monitoring/metrics.h"

namespace atl {

/// Counts what the ports turn away, and how many connections they have; docs/reference/metrics.md. All series
/// exist from the start, so that their number does not depend on who calls. Thread-safe.
class PortMetrics {
 public:
  /// `registry` outlives this. `insecure_bind`: other machines reach a port in plain text.
  PortMetrics(MetricsRegistry* registry, bool insecure_bind);

  /// `reason` as RpcServerOptions::on_call_rejected gives it; one that is not known counts as "other".
  void OnCallRejected(std::string_view reason);
  /// "data" or "admin"; "total", "address", "bytes" or "streams".
  void OnConnectionRejected(std::string_view port, std::string_view limit);
  void OnConnections(std::string_view port, size_t count);
  /// So many TLS handshakes have failed since the start.
  void OnHandshakesFailed(uint64_t total);

 private:
  std::map<std::string, Counter, std::less<>> calls_;
  std::map<std::pair<std::string, std::string>, Counter> rejected_;
  std::map<std::string, Gauge, std::less<>> open_;
  Counter handshakes_;
  std::atomic<uint64_t> handshakes_counted_{0};
};

}  // namespace atl

#endif  // ATOLL_SERVER_METRICS_PORT_METRICS_H_
