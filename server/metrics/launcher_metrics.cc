#include "server/metrics/launcher_metrics.h"

#include <algorithm>

namespace atl {

LauncherMetrics::LauncherMetrics(MetricsRegistry* registry)
    : failing_(registry->AddGauge("atoll_launcher_failing",
                                  "1 if the launcher cannot start, stop or see workers (`atollctl launcher` "
                                  "shows the reason), else 0.")),
      wanted_(registry->AddGauge("atoll_launcher_workers_wanted",
                                 "Number of workers that the launcher keeps running.")),
      running_(registry->AddGauge("atoll_launcher_workers_running",
                                  "Workers of the launcher with a running process or pod.")) {}

void LauncherMetrics::Refresh(const LauncherView& view) {
  failing_.Set(view.error.empty() ? 0 : 1);
  wanted_.Set(view.target);
  running_.Set(static_cast<double>(
      std::ranges::count_if(view.workers, [](const LaunchedWorker& worker) { return Runs(worker.state); })));
}

}  // namespace atl
