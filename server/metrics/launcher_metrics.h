#ifndef ATOLL_SERVER_METRICS_LAUNCHER_METRICS_H_
#define ATOLL_SERVER_METRICS_LAUNCHER_METRICS_H_

#include "monitoring/metrics.h"
#include "server/launch/launcher.h"

namespace atl {

/// Metrics of the launcher (docs/reference/metrics.md). All series exist from the start, with 0 without a
/// launcher. Not thread-safe: refreshed by one scrape at a time.
class LauncherMetrics {
 public:
  /// `registry` outlives this.
  explicit LauncherMetrics(MetricsRegistry* registry);

  void Refresh(const LauncherView& view);

 private:
  Gauge failing_;
  Gauge wanted_;
  Gauge running_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_METRICS_LAUNCHER_METRICS_H_
