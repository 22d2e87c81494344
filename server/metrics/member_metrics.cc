#include "server/metrics/member_metrics.h"

#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace atl {
namespace {

constexpr char kPhase[] = "atoll_member_phase";
constexpr char kContributions[] = "atoll_member_contributions_total";
constexpr char kReceived[] = "atoll_member_push_received_bytes_total";
constexpr char kSent[] = "atoll_member_pull_sent_bytes_total";
constexpr char kTime[] = "atoll_member_time_seconds_total";
constexpr char kExchangeTime[] = "atoll_member_exchange_time_seconds_total";

struct GaugeOfMember {
  const char* name;
  const char* help;
  double (*value)(const WorkerView& worker);
};

/// The part of the device's speed that the model's own operations use.
double ModelFlopsUtilization(const WorkerView& worker) {
  const ProgressReport& progress = worker.progress;
  // It trains no longer if its speed is 0.
  const bool known = progress.tokens_per_second > 0 && progress.peak_flops_per_second > 0;
  return known ? progress.model_flops_per_second / progress.peak_flops_per_second : 0;
}

/// 0 means unknown; then the series does not exist.
constexpr GaugeOfMember kKnownLater[] = {
    {"atoll_member_train_loss", "A worker's loss at its last inner step, nats per token; no series: unknown.",
     [](const WorkerView& worker) { return worker.progress.loss; }},
    {"atoll_member_gradient_norm",
     "A worker's global gradient norm before clipping, at its last inner step; no series: unknown.",
     [](const WorkerView& worker) { return worker.progress.gradient_norm; }},
    {"atoll_member_model_flops_utilization_ratio",
     "Floating-point operations of a worker's model per second, as a part of the fastest matrix product "
     "that the worker measured on its device; no series: unknown.",
     ModelFlopsUtilization}};

constexpr GaugeOfMember kGauges[] = {
    {"atoll_member_tokens_per_second",
     "Tokens per second of a worker while it computes, over its last steps, as reported by the worker; 0 "
     "while it does not train.",
     [](const WorkerView& worker) { return worker.progress.tokens_per_second; }},
    {"atoll_member_base_version", "Version that a worker trains on.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.base.value()); }},
    {"atoll_member_round_steps", "Inner steps of this round that a worker has done.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.step); }},
    {"atoll_member_round_planned_steps", "Inner steps planned for a worker in this round.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.steps); }},
    {"atoll_member_heartbeat_age_seconds", "Time since a worker's last heartbeat.",
     [](const WorkerView& worker) { return worker.seconds_since_heartbeat; }},
    {"atoll_member_memory_bytes", "Memory of a worker's process, as reported by the worker.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.memory_bytes); }},
    {"atoll_member_recent_offences", "Rounds with an offence among a worker's last offenders.within rounds.",
     [](const WorkerView& worker) { return static_cast<double>(worker.offences.recent()); }},
    {"atoll_member_incarnation", "Incarnation of a worker: a new number after each join.",
     [](const WorkerView& worker) { return static_cast<double>(worker.incarnation.value()); }}};

std::string PhaseName(WorkerPhase phase) {
  static constexpr const char* kNames[] = {"unknown",  "joining", "seeding", "pulling", "evaluating",
                                           "training", "pushing", "waiting", "leaving"};
  const auto index = static_cast<size_t>(phase);
  return index < std::size(kNames) ? kNames[index] : kNames[0];
}

std::string RoleName(uint8_t role) {
  switch (role) {
    case 1:
      return "trainer";
    case 2:
      return "evaluator";
    default:
      return "observer";
  }
}

}  // namespace

class MemberMetrics::Member {
  /// The series of one worker, one for each use.
  class TimeCounters {
   public:
    TimeCounters(MetricsRegistry* registry, const char* name, const WorkerName& worker,
                 std::span<const TimeUse> uses)
        : uses_(uses) {
      for (const TimeUse use : uses) {
        counters_.emplace_back(registry, name, "",
                               MetricLabels{{"worker", worker}, {"use", std::string(TimeUseName(use))}});
      }
    }
    void Follow(const TimeSpent& spent) {
      for (size_t i = 0; i < uses_.size(); ++i) counters_[i].Follow(spent[uses_[i]]);
    }
    void Remove() {
      for (MirroredCounter& counter : counters_) counter.Remove();
    }

   private:
    const std::span<const TimeUse> uses_;
    std::vector<MirroredCounter> counters_;
  };

 public:
  Member(MetricsRegistry* registry, const WorkerName& name)
      : registry_(registry),
        name_(name),
        accepted_(registry, kContributions, "", {{"worker", name}, {"result", "accepted"}}),
        rejected_(registry, kContributions, "", {{"worker", name}, {"result", "refused"}}),
        received_(registry, kReceived, "", {{"worker", name}}),
        sent_(registry, kSent, "", {{"worker", name}}),
        training_(registry, kTime, name, TrainingUses()) {
    for (size_t i = 0; i < std::size(kGauges); ++i) {
      gauges_[i] = registry_->AddGauge(kGauges[i].name, "", {{"worker", name}});
    }
  }

  ~Member() {
    for (size_t i = 0; i < std::size(kGauges); ++i) registry_->RemoveGauge(kGauges[i].name, gauges_[i]);
    for (size_t i = 0; i < std::size(kKnownLater); ++i) ShowKnown(i, 0);
    if (!shown_.empty()) registry_->RemoveGauge(kPhase, phase_);
    for (MirroredCounter* counter : {&accepted_, &rejected_, &received_, &sent_}) counter->Remove();
    training_.Remove();
    if (exchanges_.has_value()) exchanges_->Remove();
  }

  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void Refresh(const WorkerView& worker) {
    for (size_t i = 0; i < std::size(kGauges); ++i) gauges_[i].Set(kGauges[i].value(worker));
    ShowPhase(
        {{"worker", name_}, {"role", RoleName(worker.role)}, {"phase", PhaseName(worker.progress.phase)}});
    accepted_.Follow(static_cast<double>(worker.contributions_accepted));
    rejected_.Follow(static_cast<double>(worker.contributions_refused));
    received_.Follow(static_cast<double>(worker.push_bytes));
    sent_.Follow(static_cast<double>(worker.pull_bytes));
    for (size_t i = 0; i < std::size(kKnownLater); ++i) ShowKnown(i, kKnownLater[i].value(worker));
    training_.Follow(worker.progress.training);
    const TimeSpent& exchanges = worker.progress.exchanges;
    if (!exchanges_.has_value() && exchanges.total() > 0) {
      exchanges_.emplace(registry_, kExchangeTime, name_, ExchangeUses());
    }
    if (exchanges_.has_value()) exchanges_->Follow(exchanges);
  }

 private:
  void ShowKnown(size_t i, double value) {
    const char* const name = kKnownLater[i].name;
    if (known_[i].has_value() && value == 0) {
      registry_->RemoveGauge(name, *known_[i]);
      known_[i].reset();
    }
    if (value == 0) return;
    if (!known_[i].has_value()) known_[i] = registry_->AddGauge(name, "", {{"worker", name_}});
    known_[i]->Set(value);
  }

  /// One series per worker, instead of one per worker and phase.
  void ShowPhase(const MetricLabels& labels) {
    if (labels == shown_) return;
    if (!shown_.empty()) registry_->RemoveGauge(kPhase, phase_);
    shown_ = labels;
    phase_ = registry_->AddGauge(kPhase, "", labels);
    phase_.Set(1);
  }

  MetricsRegistry* const registry_;
  const WorkerName name_;
  std::array<Gauge, std::size(kGauges)> gauges_;
  Gauge phase_;
  MetricLabels shown_;
  MirroredCounter accepted_;
  MirroredCounter rejected_;
  MirroredCounter received_;
  MirroredCounter sent_;
  std::array<std::optional<Gauge>, std::size(kKnownLater)> known_;
  TimeCounters training_;
  std::optional<TimeCounters> exchanges_;  // only for workers with exchange threads
};

MemberMetrics::MemberMetrics(MetricsRegistry* registry) : registry_(registry) {
  for (const GaugeOfMember& gauge : kGauges) {
    registry_->Declare(MetricType::kGauge, gauge.name, gauge.help, {"worker"});
  }
  registry_->Declare(MetricType::kGauge, kPhase,
                     "Current phase of a worker, as reported by the worker; always 1.",
                     {"worker", "role", "phase"});
  registry_->Declare(MetricType::kCounter, kContributions, "A worker's accepted and refused contributions.",
                     {"worker", "result"});
  registry_->Declare(MetricType::kCounter, kReceived, "Payload bytes received from a worker.", {"worker"});
  registry_->Declare(MetricType::kCounter, kSent, "Bytes sent to a worker in pulls, including framing.",
                     {"worker"});
  for (const GaugeOfMember& gauge : kKnownLater) {
    registry_->Declare(MetricType::kGauge, gauge.name, gauge.help, {"worker"});
  }
  registry_->Declare(
      MetricType::kCounter, kTime,
      "Time of a worker's training thread by use, as reported by the worker. Every second counts as one use.",
      {"worker", "use"});
  registry_->Declare(MetricType::kCounter, kExchangeTime,
                     "Time of a worker's exchange threads by use, all threads together (overlapped).",
                     {"worker", "use"});
}

void MemberMetrics::Refresh(const std::vector<WorkerView>& live_workers) {
  std::set<WorkerName> live;
  for (const WorkerView& worker : live_workers) live.insert(worker.name);
  std::erase_if(members_, [&](const auto& entry) { return !live.contains(entry.first); });
  for (const WorkerView& worker : live_workers) {
    std::shared_ptr<Member>& member = members_[worker.name];
    if (member == nullptr) member = std::make_shared<Member>(registry_, worker.name);
    member->Refresh(worker);
  }
}

}  // namespace atl
