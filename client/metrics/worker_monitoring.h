#ifndef ATOLL_CLIENT_METRICS_WORKER_MONITORING_H_
#define ATOLL_CLIENT_METRICS_WORKER_MONITORING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/metrics/worker_metrics.h"
#include "client/sync/worker.h"
#include "common/log.h"
#include "monitoring/certificate_metrics.h"
#include "monitoring/endpoint.h"
#include "monitoring/metrics.h"
#include "protos/transport/channel_security.h"

namespace atl {

struct WorkerMonitoringOptions {
  std::string program;  // label of atoll_build_info
  std::string listen;   // address of /metrics; empty: none
  std::shared_ptr<const ChannelSecurity> security;
};

/// The metrics of a worker's process: those of the program, of its certificate and of the worker, and the
/// address at which they are served.
class WorkerMonitoring {
 public:
  /// InvalidArgument, Unavailable: names --metrics-listen.
  static absl::StatusOr<std::unique_ptr<WorkerMonitoring>> Start(WorkerMonitoringOptions options,
                                                                 const Logger& log);
  WorkerMonitoring(const WorkerMonitoring&) = delete;
  WorkerMonitoring& operator=(const WorkerMonitoring&) = delete;

  WorkerObserver* observer() { return &metrics_; }
  /// Scrapes also show where this worker's time went, until StopWatching. Once.
  void Watch(const Worker* worker);
  /// From here on the worker is not asked. Waits for a scrape in progress.
  void StopWatching() { registry_.StopRefreshing(); }

 private:
  explicit WorkerMonitoring(WorkerMonitoringOptions options);

  const WorkerMonitoringOptions options_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_;
  std::unique_ptr<CertificateMetrics> certificates_;  // null without TLS
  std::unique_ptr<MetricsEndpoint> endpoint_;         // last: its threads use everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_METRICS_WORKER_MONITORING_H_
