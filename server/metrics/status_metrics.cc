#include "server/metrics/status_metrics.h"

#include <algorithm>
#include <limits>

namespace atoll {
namespace {

constexpr char kRate[] = "atoll_worker_tokens_per_second";
constexpr char kLoss[] = "atoll_worker_train_loss";
constexpr char kBase[] = "atoll_worker_base_version";
constexpr char kAge[] = "atoll_worker_heartbeat_age_seconds";
constexpr char kMemory[] = "atoll_worker_memory_bytes";
constexpr char kOffenceCount[] = "atoll_worker_recent_offences";

}  // namespace

StatusMetrics::StatusMetrics(MetricsRegistry* registry) : registry_(registry) {
  tokens_per_second_ = registry_->AddGauge("atoll_tokens_per_second",
                                           "Tokens that all workers together train on in a second.");
  learning_rate_ =
      registry_->AddGauge("atoll_learning_rate", "Inner learning rate at the committed position.");
  parameters_ = registry_->AddGauge("atoll_model_parameters", "Parameters of the model.");
  const char* const epsilon = "Privacy spent so far, for privacy.delta; NaN: no bound.";
  epsilon_ = registry_->AddGauge("atoll_privacy_epsilon", epsilon, {{"seen", "pushes"}});
  published_epsilon_ = registry_->AddGauge("atoll_privacy_epsilon", epsilon, {{"seen", "published"}});
}

void StatusMetrics::ShowPrivacy(const std::optional<PrivacyView>& privacy) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  epsilon_.Set(privacy ? privacy->epsilon.value_or(none) : none);
  published_epsilon_.Set(privacy ? privacy->published_epsilon.value_or(none) : none);
}

void StatusMetrics::Refresh(const StatusView& status, const std::vector<WorkerView>& live_workers) {
  tokens_per_second_.Set(status.tokens_per_second);
  learning_rate_.Set(status.learning_rate);
  parameters_.Set(static_cast<double>(status.parameters));
  ShowPrivacy(status.privacy);
  std::erase_if(workers_, [&](const auto& entry) {
    const bool gone = std::none_of(live_workers.begin(), live_workers.end(),
                                   [&](const WorkerView& worker) { return worker.name == entry.first; });
    if (gone) RemoveWorker(entry.second);
    return gone;
  });
  for (const WorkerView& worker : live_workers) {
    auto it = workers_.find(worker.name);
    if (it == workers_.end()) it = workers_.emplace(worker.name, AddWorker(worker.name)).first;
    const WorkerGauges& gauges = it->second;
    gauges.tokens_per_second.Set(worker.progress.tokens_per_second);
    gauges.loss.Set(worker.progress.loss);
    gauges.base_version.Set(static_cast<double>(worker.progress.base.value()));
    gauges.heartbeat_age.Set(worker.seconds_since_heartbeat);
    gauges.memory.Set(static_cast<double>(worker.progress.memory_bytes));
    gauges.offences.Set(worker.offences.recent());
  }
}

StatusMetrics::WorkerGauges StatusMetrics::AddWorker(const WorkerName& name) {
  const MetricLabels labels = {{"worker", name}};
  return {
      .tokens_per_second =
          registry_->AddGauge(kRate, "Tokens that a worker trains on in a second, as it says.", labels),
      .loss = registry_->AddGauge(kLoss, "A worker's loss at its last inner step, nats per token.", labels),
      .base_version = registry_->AddGauge(kBase, "Version that a worker trains on.", labels),
      .heartbeat_age = registry_->AddGauge(kAge, "Time since a worker was last heard of.", labels),
      .memory = registry_->AddGauge(kMemory, "Memory of a worker's process, as it says.", labels),
      .offences = registry_->AddGauge(
          kOffenceCount, "Rounds with an offence among those that offenders.within looks at.", labels)};
}

void StatusMetrics::RemoveWorker(const WorkerGauges& gauges) {
  registry_->RemoveGauge(kRate, gauges.tokens_per_second);
  registry_->RemoveGauge(kLoss, gauges.loss);
  registry_->RemoveGauge(kBase, gauges.base_version);
  registry_->RemoveGauge(kAge, gauges.heartbeat_age);
  registry_->RemoveGauge(kMemory, gauges.memory);
  registry_->RemoveGauge(kOffenceCount, gauges.offences);
}

}  // namespace atoll
