#ifndef ATOLL_SERVER_METRICS_STATUS_METRICS_H_
#define ATOLL_SERVER_METRICS_STATUS_METRICS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitoring/metrics.h"
#include "server/metrics/member_metrics.h"
#include "server/views.h"

namespace atl {

/// Metrics of the run, its open rounds, its disk and its live workers (member_metrics.h) at the moment of a
/// scrape. Not thread-safe: refreshed by one scrape at a time.
class StatusMetrics {
 public:
  /// `registry` outlives this.
  explicit StatusMetrics(MetricsRegistry* registry);

  /// `status` has a history of at least one round and one evaluation.
  void Refresh(const StatusView& status, const std::vector<WorkerView>& live_workers);

 private:
  struct RoundGauges {
    Gauge open;
    Gauge deadline;
    Gauge arrived;
    Gauge expected;
    Gauge quorum;
  };

  void AddRun();
  void AddRounds();
  void RefreshRun(const StatusView& status);
  void ShowPrivacy(const std::optional<PrivacyView>& privacy);
  void RefreshTasks(const StatusView& status);
  void RefreshRound(const FragmentStatusView& fragment);
  void RefreshDisk(const std::string& directory);

  MetricsRegistry* const registry_;
  Gauge run_info_;
  std::string run_id_;  // as in run_info_
  Gauge train_loss_;
  Gauge validation_loss_;
  Gauge tokens_per_second_;
  Gauge learning_rate_;
  Gauge eta_;
  Gauge parameters_;
  Gauge epsilon_;
  Gauge published_epsilon_;
  Gauge rejected_joins_;
  Gauge disk_free_;
  Gauge disk_size_;
  MirroredCounter pushed_;
  MirroredCounter pulled_;
  MirroredCounter data_parallel_;
  std::map<FragmentId, RoundGauges> rounds_;
  std::map<std::pair<std::string, std::string>, Gauge> task_scores_;  // by task and metric
  MemberMetrics members_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_METRICS_STATUS_METRICS_H_
