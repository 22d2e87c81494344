#ifndef ATOLL_MONITORING_CERTIFICATE_METRICS_H_
#define ATOLL_MONITORING_CERTIFICATE_METRICS_H_

#include "common/clock.h"
#include "monitoring/metrics.h"

namespace atl {

/// A program's own certificate, as it is in force. docs/reference/metrics.md. Thread-safe.
class CertificateMetrics {
 public:
  /// `registry` outlives this.
  explicit CertificateMetrics(MetricsRegistry* registry);

  /// `files_usable`: what is in its files now could be, or is, in force.
  void Set(WallTime not_after, bool files_usable);

 private:
  Gauge not_after_;
  Gauge files_unusable_;
};

}  // namespace atl

#endif  // ATOLL_MONITORING_CERTIFICATE_METRICS_H_
