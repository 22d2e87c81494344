#ifndef ATOLL_SERVER_METRICS_STATUS_METRICS_H_
#define ATOLL_SERVER_METRICS_STATUS_METRICS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitoring/metrics.h"
#include "server/views.h"

namespace atoll {

/// What the coordinator knows of the run and of each worker at the moment of a scrape: one set of series per
/// live worker, gone when the worker is. The names of workers are bounded by limits.max_workers. Not
/// thread-safe: refreshed by one scrape at a time.
class StatusMetrics {
 public:
  /// `registry` outlives this.
  explicit StatusMetrics(MetricsRegistry* registry);

  void Refresh(const StatusView& status, const std::vector<WorkerView>& live_workers);

 private:
  struct WorkerGauges {
    Gauge tokens_per_second;
    Gauge loss;
    Gauge base_version;
    Gauge heartbeat_age;
    Gauge memory;
    Gauge offences;
  };

  void ShowPrivacy(const std::optional<PrivacyView>& privacy);
  WorkerGauges AddWorker(const WorkerName& name);
  void RemoveWorker(const WorkerGauges& gauges);

  MetricsRegistry* const registry_;
  Gauge tokens_per_second_;
  Gauge learning_rate_;
  Gauge parameters_;
  Gauge epsilon_;
  Gauge published_epsilon_;
  std::map<WorkerName, WorkerGauges> workers_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_METRICS_STATUS_METRICS_H_
