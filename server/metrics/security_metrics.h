#ifndef ATOLL_SERVER_METRICS_SECURITY_METRICS_H_
#define ATOLL_SERVER_METRICS_SECURITY_METRICS_H_

#include "absl/status/status.h"
#include "monitoring/metrics.h"

namespace atoll {

/// Who gets in. docs/metrics.md. Thread-safe.
class SecurityMetrics {
 public:
  /// `registry` outlives this. `insecure_bind`: other machines reach a port in plain text.
  SecurityMetrics(MetricsRegistry* registry, bool insecure_bind);

  /// A call that was refused because of who made it.
  void OnRefused(const absl::Status& refusal);

 private:
  Counter unknown_;
  Counter denied_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_METRICS_SECURITY_METRICS_H_
