#include "client/metrics/worker_metrics.h"

#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace atl {
namespace {

constexpr char kBaseVersion[] = "atoll_worker_base_version";

constexpr std::pair<WorkerPhase, const char*> kPhases[] = {
    {WorkerPhase::kJoining, "joining"},   {WorkerPhase::kSeeding, "seeding"},
    {WorkerPhase::kPulling, "pulling"},   {WorkerPhase::kEvaluating, "evaluating"},
    {WorkerPhase::kTraining, "training"}, {WorkerPhase::kPushing, "pushing"},
    {WorkerPhase::kWaiting, "waiting"},   {WorkerPhase::kLeaving, "leaving"}};

constexpr std::pair<PushResultKind, const char*> kResults[] = {{PushResultKind::kAccepted, "accepted"},
                                                               {PushResultKind::kDuplicate, "duplicate"},
                                                               {PushResultKind::kRejected, "refused"},
                                                               {PushResultKind::kDropped, "dropped"}};

}  // namespace

WorkerMetrics::WorkerMetrics(MetricsRegistry* registry) : registry_(registry) {
  AddCounters();
  AddTimes();
  AddDurations();
  AddGauges();
}

void WorkerMetrics::AddCounters() {
  const auto add = [this](const char* name, const char* help, const MetricLabels& labels = {}) {
    return registry_->AddCounter(name, help, labels);
  };
  const char* const joins = "Successful joins: the first of the process, and later ones.";
  first_joins_ = add("atoll_worker_joins_total", joins, {{"kind", "first"}});
  rejoins_ = add("atoll_worker_joins_total", joins, {{"kind", "again"}});
  inner_steps_ = add("atoll_worker_inner_steps_total", "Inner optimizer steps.");
  tokens_ = add("atoll_worker_tokens_total", "Tokens trained on.");
  rounds_ = add("atoll_worker_rounds_total", "Rounds, from adopting a base to the verdict on the push.");
  rounds_not_finite_ = add("atoll_worker_rounds_not_finite_total",
                           "Rounds thrown away because a loss or a gradient was not finite.");
  pushes_skipped_ = add("atoll_worker_pushes_skipped_total",
                        "Fragments that were due while their last push was unanswered (overlapped).");
  answers_used_ = add("atoll_worker_answers_used_total",
                      "Published versions that replaced or were blended into local parameters (overlapped).");
  answer_steps_ =
      add("atoll_worker_answer_steps_total", "Inner steps from the pushes to the use of those answers.");
  compute_seconds_ = add("atoll_worker_compute_seconds_total", "Time in inner steps, overdue ones included.");
  wait_seconds_ = add("atoll_worker_wait_seconds_total", "Time neither computing nor exchanging.");
  exchange_seconds_ = add("atoll_worker_exchange_seconds_total",
                          "Time of exchanges, beside the training when they overlap with it.");
  evaluate_seconds_ = add("atoll_worker_evaluate_seconds_total", "Time evaluating published parameters.");
  push_bytes_ = add("atoll_worker_push_sent_bytes_total", "Sent in pushes, every attempt, framing included.");
  pull_bytes_ = add("atoll_worker_pull_received_bytes_total", "Received in pulls, framing included.");
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const auto failure = static_cast<absl::StatusCode>(code);
    retries_[failure] =
        add("atoll_worker_retries_total", "Calls that failed and were tried again, by gRPC status code.",
            {{"code", absl::StatusCodeToString(failure)}});
  }
  const char* const heartbeats = "Heartbeats by whether they were answered.";
  heartbeats_ok_ = add("atoll_worker_heartbeats_total", heartbeats, {{"result", "ok"}});
  heartbeats_failed_ = add("atoll_worker_heartbeats_total", heartbeats, {{"result", "failed"}});
  for (const auto& [result, label] : kResults) {
    contributions_[result] =
        add("atoll_worker_contributions_total", "Contributions by what became of them.", {{"result", label}});
  }
}

void WorkerMetrics::AddTimes() {
  const auto add = [this](const char* name, const char* help, std::span<const TimeUse> uses) {
    std::vector<MirroredCounter> counters;
    for (const TimeUse use : uses) {
      counters.emplace_back(registry_, name, help, MetricLabels{{"use", std::string(TimeUseName(use))}});
    }
    return counters;
  };
  training_times_ =
      add("atoll_worker_training_time_seconds_total",
          "Where the time of the training thread goes: every second, in one use (docs/reference/worker.md).",
          TrainingUses());
  exchange_times_ = add("atoll_worker_exchange_time_seconds_total",
                        "The same of the exchange threads together (overlapped).", ExchangeUses());
}

void WorkerMetrics::SetTimes(const TimeSpent& training, const TimeSpent& exchanges) {
  for (size_t i = 0; i < training_times_.size(); ++i) training_times_[i].Follow(training[TrainingUses()[i]]);
  for (size_t i = 0; i < exchange_times_.size(); ++i) {
    exchange_times_[i].Follow(exchanges[ExchangeUses()[i]]);
  }
}

void WorkerMetrics::AddDurations() {
  const auto add = [this](const char* name, const char* help, const std::vector<double>& buckets) {
    return registry_->AddHistogram(name, help, buckets);
  };
  step_seconds_ = add("atoll_worker_inner_step_duration_seconds", "One inner step.", DurationBuckets());
  round_seconds_ = add("atoll_worker_round_duration_seconds", "One round.", RoundBuckets());
  pull_seconds_ = add("atoll_worker_pull_duration_seconds",
                      "Duration of one pull, from the answer to the last byte.", TransferBuckets());
  push_seconds_ = add("atoll_worker_push_duration_seconds",
                      "Duration of one push, from the first byte to the verdict.", TransferBuckets());
  heartbeat_seconds_ = add("atoll_worker_heartbeat_duration_seconds", "Round trip of an answered heartbeat.",
                           ShortDurationBuckets());
}

void WorkerMetrics::AddGauges() {
  const auto add = [this](const char* name, const char* help) {
    const Gauge gauge = registry_->AddGauge(name, help);
    gauge.Set(std::numeric_limits<double>::quiet_NaN());  // not known yet
    return gauge;
  };
  loss_ = add("atoll_worker_loss", "Training loss of the last inner step, nats per token.");
  round_loss_ = add("atoll_worker_round_loss", "Mean training loss of the last round, nats per token.");
  gradient_norm_ =
      add("atoll_worker_gradient_norm", "Global gradient norm before clipping, last inner step.");
  learning_rate_ = add("atoll_worker_learning_rate", "Learning rate of the last inner step.");
  validation_loss_ = add("atoll_worker_validation_loss",
                         "Loss of the published parameters that this worker evaluated last, nats per token.");
  registry_->Declare(MetricType::kGauge, kBaseVersion, "Version that the worker trains on.", {"fragment"});
  connected_ = registry_->AddGauge("atoll_worker_connected", "1 while the coordinator answers.");
  for (const auto& [phase, label] : kPhases) {
    phases_[phase] =
        registry_->AddGauge("atoll_worker_phase", "1 for what the worker is doing.", {{"phase", label}});
  }
}

void WorkerMetrics::OnJoined(const JoinedRun& info, bool rejoin) {
  (rejoin ? rejoins_ : first_joins_).Increment();
  connected_.Set(1);
}

void WorkerMetrics::OnPhase(WorkerPhase phase) {
  for (const auto& [each, gauge] : phases_) gauge.Set(each == phase ? 1 : 0);
}

void WorkerMetrics::OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) {
  inner_steps_.Increment();
  tokens_.Increment(static_cast<double>(step.tokens));
  compute_seconds_.Increment(ToSeconds(compute));
  step_seconds_.Observe(ToSeconds(compute));
  loss_.Set(step.loss);
  gradient_norm_.Set(step.gradient_norm);
  learning_rate_.Set(learning_rate);
}

void WorkerMetrics::OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                             Duration transfer) {
  pull_bytes_.Increment(static_cast<double>(wire_bytes));
  exchange_seconds_.Increment(ToSeconds(transfer));
  pull_seconds_.Observe(ToSeconds(transfer));
  MutexLock lock(&mutex_);
  auto [it, added] = base_versions_.try_emplace(fragment);
  if (added) {
    it->second = registry_->AddGauge(kBaseVersion, "", {{"fragment", std::to_string(fragment.value())}});
  }
  it->second.Set(static_cast<double>(version.value()));
}

void WorkerMetrics::OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes,
                             Duration exchange) {
  contributions_.at(result).Increment();
  push_bytes_.Increment(static_cast<double>(wire_bytes));
  if (result == PushResultKind::kDropped) return;  // nothing was exchanged
  exchange_seconds_.Increment(ToSeconds(exchange));
  push_seconds_.Observe(ToSeconds(exchange));
}

void WorkerMetrics::OnUsed(FragmentId, Version, uint64_t steps_since_push) {
  answers_used_.Increment();
  answer_steps_.Increment(static_cast<double>(steps_since_push));
}

void WorkerMetrics::OnPushSkipped(FragmentId) { pushes_skipped_.Increment(); }

void WorkerMetrics::OnRound(uint32_t steps, uint64_t tokens, double mean_loss, Duration duration) {
  rounds_.Increment();
  round_loss_.Set(mean_loss);
  round_seconds_.Observe(ToSeconds(duration));
}

void WorkerMetrics::OnRoundNotFinite() { rounds_not_finite_.Increment(); }

void WorkerMetrics::OnEvaluated(const EvaluationReport& report, Duration compute) {
  evaluate_seconds_.Increment(ToSeconds(compute));
  validation_loss_.Set(report.loss);
}

void WorkerMetrics::OnHeartbeat(bool ok, Duration round_trip) {
  connected_.Set(ok ? 1 : 0);
  (ok ? heartbeats_ok_ : heartbeats_failed_).Increment();
  if (ok) heartbeat_seconds_.Observe(ToSeconds(round_trip));
}

void WorkerMetrics::OnRetry(const absl::Status& error, Duration pause) {
  const auto it = retries_.find(error.code());
  if (it != retries_.end()) it->second.Increment();
}

void WorkerMetrics::OnWaited(Duration waited) { wait_seconds_.Increment(ToSeconds(waited)); }

}  // namespace atl
