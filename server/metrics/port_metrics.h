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

/// Counts rejected calls and connections of the ports, and their open connections
/// (docs/reference/metrics.md). All series exist from the start, so callers cannot change their number.
/// Thread-safe.
class PortMetrics {
 public:
  /// `registry` outlives this. `insecure_bind`: other machines can reach a port in plain text.
  PortMetrics(MetricsRegistry* registry, bool insecure_bind);

  /// `reason` is that of RpcServerOptions::on_call_rejected; an unknown reason counts as "other".
  void OnCallRejected(std::string_view reason);
  /// "data" or "admin"; "total", "address", "bytes" or "streams".
  void OnConnectionRejected(std::string_view port, std::string_view limit);
  void OnConnections(std::string_view port, size_t count);
  /// Number of TLS handshakes that have failed since the start.
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
