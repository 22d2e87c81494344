#ifndef ATOLL_MONITORING_ENDPOINT_H_
#define ATOLL_MONITORING_ENDPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "monitoring/metrics.h"

namespace prometheus {
class Exposer;
}

namespace atoll {

/// Answers GET /metrics over HTTP, on threads of its own, until destroyed. Read-only, but open to whoever
/// reaches the address.
class MetricsEndpoint {
 public:
  /// `address` as "127.0.0.1:7602"; port 0: any free one. `registry` outlives this.
  ///   InvalidArgument  not an address
  ///   Unavailable      the port is in use: names it
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& address,
                                                                const MetricsRegistry& registry);
  ~MetricsEndpoint();

  /// As bound: the port is never 0.
  const BindAddress& address() const { return address_; }

 private:
  MetricsEndpoint(std::unique_ptr<prometheus::Exposer> exposer, BindAddress address);

  std::unique_ptr<prometheus::Exposer> exposer_;
  const BindAddress address_;
};

}  // namespace atoll

#endif  // ATOLL_MONITORING_ENDPOINT_H_
