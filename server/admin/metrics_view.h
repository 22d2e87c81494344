#ifndef ATOLL_SERVER_ADMIN_METRICS_VIEW_H_
#define ATOLL_SERVER_ADMIN_METRICS_VIEW_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "server/admin/admin_control.h"
#include "server/admin/metric_export.h"
#include "server/coordinator_context.h"
#include "server/views.h"

namespace atl {

/// Least squares over the evaluations' (tokens, loss): nats per token for every million tokens; negative
/// while the loss falls. 0 with fewer than two points, or all at one place.
struct LossPoint {
  double million_tokens = 0;
  double loss = 0;
};
double LossSlope(std::span<const LossPoint> points);

/// UtilisationOf the live trainers together; when none is live, of all of these. 0 when they told nothing.
/// Nobody counts with more than `run_seconds`, the age of the run (0: not known).
double ComputeUtilisation(std::span<const WorkerView> workers, double run_seconds);

/// From the creation of the run to now; to the close of its last round when it is finished or stopped.
double RunSeconds(const StatusView& status, int64_t created_unix_ns, int64_t now_unix_ns);

/// All that follows from the status (with its rounds and evaluations, oldest first) and the workers: the live
/// ones, or, when there is none, all.
MetricsView SummariseRun(const StatusView& status, std::span<const WorkerView> workers, double wall_seconds);

/// AdminControl::GetMetrics and ExportMetrics.
MetricsView MetricsOf(const CoordinatorContext& context);
/// `status`: with all its rounds and evaluations.
absl::Status ExportMetricsOf(RunStore* store, const StatusView& status, const RecordedRuns& runs,
                             const AdminControl::MetricSink& sink);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_METRICS_VIEW_H_
