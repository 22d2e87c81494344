#ifndef ATOLL_MONITORING_CERTIFICATE_METRICS_H_
#define ATOLL_MONITORING_CERTIFICATE_METRICS_H_

#include "common/clock.h"
#include "monitoring/metrics.h"

namespace atl {

/// Metrics of the certificate that the program uses (docs/reference/metrics.md). Thread-safe.
class CertificateMetrics {
 public:
  /// `registry` outlives this.
  explicit CertificateMetrics(MetricsRegistry* registry);

  /// `files_usable`: the current files can be loaded.
  void Set(WallTime not_after, bool files_usable);

 private:
  Gauge not_after_;
  Gauge files_unusable_;
};

}  // namespace atl

#endif  // ATOLL_MONITORING_CERTIFICATE_METRICS_H_
