#ifndef ATOLL_SERVER_METRICS_MEMBER_METRICS_H_
#define ATOLL_SERVER_METRICS_MEMBER_METRICS_H_

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "monitoring/metrics.h"
#include "server/views.h"

namespace atl {

/// Each live worker as the coordinator sees it: one set of series, which goes when the worker goes. The names
/// of workers are bounded by limits.max_workers. (What a worker says of itself at its own endpoint is
/// atoll_worker_*.) Not thread-safe: refreshed by one scrape at a time.
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
