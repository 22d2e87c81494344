#include "server/metrics/member_metrics.h"

#include <iterator>
#include <set>
#include <string>

namespace atoll {
namespace {

constexpr char kPhase[] = "atoll_member_phase";
constexpr char kContributions[] = "atoll_member_contributions_total";
constexpr char kReceived[] = "atoll_member_push_received_bytes_total";
constexpr char kSent[] = "atoll_member_pull_sent_bytes_total";
constexpr char kTime[] = "atoll_member_time_seconds_total";

struct GaugeOfMember {
  const char* name;
  const char* help;
  double (*value)(const WorkerView& worker);
};

constexpr GaugeOfMember kGauges[] = {
    {"atoll_member_tokens_per_second",
     "Tokens that a worker trains on in a second while it computes, as it says.",
     [](const WorkerView& worker) { return worker.progress.tokens_per_second; }},
    {"atoll_member_train_loss", "A worker's loss at its last inner step, nats per token.",
     [](const WorkerView& worker) { return worker.progress.loss; }},
    {"atoll_member_gradient_norm", "A worker's global gradient norm before clipping, last inner step.",
     [](const WorkerView& worker) { return worker.progress.gradient_norm; }},
    {"atoll_member_base_version", "Version that a worker trains on.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.base.value()); }},
    {"atoll_member_round_steps", "Inner steps that a worker has done of this round.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.step); }},
    {"atoll_member_round_planned_steps", "Inner steps that a worker is to do in this round.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.steps); }},
    {"atoll_member_heartbeat_age_seconds", "Time since a worker was last heard of.",
     [](const WorkerView& worker) { return worker.seconds_since_heartbeat; }},
    {"atoll_member_memory_bytes", "Memory of a worker's process, as it says.",
     [](const WorkerView& worker) { return static_cast<double>(worker.progress.memory_bytes); }},
    {"atoll_member_recent_offences", "Rounds with an offence among those that offenders.within looks at.",
     [](const WorkerView& worker) { return static_cast<double>(worker.offences.recent()); }},
    {"atoll_member_incarnation", "Life of a worker: another number after each join.",
     [](const WorkerView& worker) { return static_cast<double>(worker.incarnation.value()); }}};

std::string PhaseName(WorkerPhaseView phase) {
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
 public:
  Member(MetricsRegistry* registry, const WorkerName& name)
      : registry_(registry),
        name_(name),
        accepted_(registry, kContributions, "", {{"worker", name}, {"result", "accepted"}}),
        refused_(registry, kContributions, "", {{"worker", name}, {"result", "refused"}}),
        received_(registry, kReceived, "", {{"worker", name}}),
        sent_(registry, kSent, "", {{"worker", name}}),
        compute_(registry, kTime, "", {{"worker", name}, {"use", "compute"}}),
        exchange_(registry, kTime, "", {{"worker", name}, {"use", "exchange"}}),
        wait_(registry, kTime, "", {{"worker", name}, {"use", "wait"}}) {
    for (size_t i = 0; i < std::size(kGauges); ++i) {
      gauges_[i] = registry_->AddGauge(kGauges[i].name, "", {{"worker", name}});
    }
  }

  ~Member() {
    for (size_t i = 0; i < std::size(kGauges); ++i) registry_->RemoveGauge(kGauges[i].name, gauges_[i]);
    if (!shown_.empty()) registry_->RemoveGauge(kPhase, phase_);
    for (MirroredCounter* counter :
         {&accepted_, &refused_, &received_, &sent_, &compute_, &exchange_, &wait_}) {
      counter->Remove();
    }
  }

  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void Refresh(const WorkerView& worker) {
    for (size_t i = 0; i < std::size(kGauges); ++i) gauges_[i].Set(kGauges[i].value(worker));
    ShowPhase(
        {{"worker", name_}, {"role", RoleName(worker.role)}, {"phase", PhaseName(worker.progress.phase)}});
    accepted_.Follow(static_cast<double>(worker.contributions_accepted));
    refused_.Follow(static_cast<double>(worker.contributions_refused));
    received_.Follow(static_cast<double>(worker.push_bytes));
    sent_.Follow(static_cast<double>(worker.pull_bytes));
    compute_.Follow(worker.progress.compute_seconds);
    exchange_.Follow(worker.progress.exchange_seconds);
    wait_.Follow(worker.progress.wait_seconds);
  }

 private:
  /// One series per worker, not one per worker and phase.
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
  MirroredCounter refused_;
  MirroredCounter received_;
  MirroredCounter sent_;
  MirroredCounter compute_;
  MirroredCounter exchange_;
  MirroredCounter wait_;
};

MemberMetrics::MemberMetrics(MetricsRegistry* registry) : registry_(registry) {
  for (const GaugeOfMember& gauge : kGauges) {
    registry_->Declare(MetricType::kGauge, gauge.name, gauge.help, {"worker"});
  }
  registry_->Declare(MetricType::kGauge, kPhase, "What a worker is doing, as it says; always 1.",
                     {"worker", "role", "phase"});
  registry_->Declare(MetricType::kCounter, kContributions,
                     "A worker's contributions that were accepted, and refused.", {"worker", "result"});
  registry_->Declare(MetricType::kCounter, kReceived, "Payload received of a worker.", {"worker"});
  registry_->Declare(MetricType::kCounter, kSent, "Sent to a worker in pulls, framing included.", {"worker"});
  registry_->Declare(MetricType::kCounter, kTime, "Where a worker's time goes, as it says.",
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

}  // namespace atoll
