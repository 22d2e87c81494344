#ifndef ATOLL_SERVER_ADMIN_METRICS_VIEW_H_
#define ATOLL_SERVER_ADMIN_METRICS_VIEW_H_

#include <span>
#include <vector>

#include "server/admin_control.h"
#include "server/views.h"

namespace atoll {

/// Least squares over the evaluations' (tokens, loss): nats per token for every million tokens; negative
/// while the loss falls. 0 with fewer than two points, or all at one place.
struct LossPoint {
  double million_tokens = 0;
  double loss = 0;
};
double LossSlope(std::span<const LossPoint> points);

/// Compute seconds of the workers over their compute, wait and exchange seconds; 0 when they told none.
double ComputeUtilisation(std::span<const WorkerView> workers);

/// All that follows from the status (with its rounds and evaluations, oldest first) and the live workers.
MetricsView SummariseRun(const StatusView& status, std::span<const WorkerView> live_workers,
                         double wall_seconds);

}  // namespace atoll

#endif  // ATOLL_SERVER_ADMIN_METRICS_VIEW_H_
