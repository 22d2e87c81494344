#include "client/metrics/worker_monitoring.h"

#include <utility>

#include "common/bind_address.h"
#include "monitoring/program_metrics.h"

namespace atl {

WorkerMonitoring::WorkerMonitoring(WorkerMonitoringOptions options)
    : options_(std::move(options)), metrics_(&registry_) {
  AddProgramMetrics(&registry_, options_.program);
  const auto certificates = options_.security->certificates();
  if (certificates == nullptr || certificates->certificate.empty()) return;
  certificates_ = std::make_unique<CertificateMetrics>(&registry_);
  registry_.BeforeScrape([this] {
    certificates_->Set(options_.security->certificates()->facts.not_after,
                       options_.security->files_outcome().ok());
  });
}

absl::StatusOr<std::unique_ptr<WorkerMonitoring>> WorkerMonitoring::Start(WorkerMonitoringOptions options,
                                                                          const Logger& log) {
  std::unique_ptr<WorkerMonitoring> monitoring(new WorkerMonitoring(std::move(options)));
  const std::string& listen = monitoring->options_.listen;
  if (listen.empty()) return monitoring;
  auto endpoint = MetricsEndpoint::Start(listen, monitoring->registry_);
  if (!endpoint.ok()) return NameOption(endpoint.status(), "--metrics-listen", listen);
  monitoring->endpoint_ = *std::move(endpoint);
  log.Info("metrics", {{"url", "http://" + monitoring->endpoint_->address().ToString() + "/metrics"}});
  return monitoring;
}

void WorkerMonitoring::Watch(const Worker* worker) {
  registry_.BeforeScrape(
      [this, worker] { metrics_.SetTimes(worker->training_time(), worker->exchange_time()); });
}

}  // namespace atl
