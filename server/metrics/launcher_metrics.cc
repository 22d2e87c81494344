#include "server/metrics/launcher_metrics.h"

#include <algorithm>

namespace atl {

LauncherMetrics::LauncherMetrics(MetricsRegistry* registry)
    : failing_(registry->AddGauge(
          "atoll_launcher_failing",
          "1: the launcher cannot start, stop or see workers; `atollctl launcher` says why. Else 0.")),
      wanted_(registry->AddGauge("atoll_launcher_workers_wanted", "Workers that the launcher is to run.")),
      running_(registry->AddGauge("atoll_launcher_workers_running",
                                  "Workers of the launcher whose process or pod runs.")) {}

void LauncherMetrics::Refresh(const LauncherView& view) {
  failing_.Set(view.error.empty() ? 0 : 1);
  wanted_.Set(view.target);
  running_.Set(static_cast<double>(
      std::ranges::count_if(view.workers, [](const LaunchedWorker& worker) { return Runs(worker.state); })));
}

}  // namespace atl
