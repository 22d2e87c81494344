#ifndef ATOLL_SERVER_METRICS_MEMBER_METRICS_H_
#define ATOLL_SERVER_METRICS_MEMBER_METRICS_H_

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "monitoring/metrics.h"
#include "server/views.h"

namespace atl {

/// Metrics of each live worker as the coordinator sees it. A worker's series are removed when it leaves;
/// limits.max_workers bounds their number. (atoll_worker_* are the metrics of a worker's own endpoint.) Not
/// thread-safe: refreshed by one scrape at a time.
class MemberMetrics {
 public:
  /// `registry` outlives this.
  explicit MemberMetrics(MetricsRegistry* registry);

  void Refresh(const std::vector<WorkerView>& live_workers);

 private:
  class Member;

  MetricsRegistry* const registry_;
  std::map<WorkerName, std::shared_ptr<Member>> members_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_METRICS_MEMBER_METRICS_H_
