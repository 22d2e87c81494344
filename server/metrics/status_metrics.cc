#include "server/metrics/status_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <limits>

namespace atl {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

constexpr char kRunInfo[] = "atoll_run_info";
constexpr char kTaskScore[] = "atoll_task_score";
constexpr char kOpen[] = "atoll_round_open_seconds";
constexpr char kDeadline[] = "atoll_round_deadline_seconds";
constexpr char kArrived[] = "atoll_round_arrived_contributions";
constexpr char kExpected[] = "atoll_round_expected_contributions";
constexpr char kQuorum[] = "atoll_round_quorum_contributions";
constexpr char kExchanged[] = "atoll_exchanged_bytes_total";

}  // namespace

StatusMetrics::StatusMetrics(MetricsRegistry* registry) : registry_(registry), members_(registry) {
  AddRun();
  AddRounds();
}

void StatusMetrics::AddRun() {
  const auto add = [this](const char* name, const char* help) {
    const Gauge gauge = registry_->AddGauge(name, help);
    gauge.Set(kUnknown);
    return gauge;
  };
  registry_->Declare(MetricType::kGauge, kRunInfo, "Name and id of the run; always 1.",
                     {"run_id", "run_name"});
  train_loss_ = add("atoll_train_loss", "Mean training loss of the newest round, nats per token.");
  validation_loss_ =
      add("atoll_validation_loss", "Loss of the published parameters on held-out text, nats per token.");
  registry_->Declare(MetricType::kGauge, kTaskScore,
                     "Score of the newest published parameters that the tasks of evaluation.tasks were run "
                     "on: the share of questions that are answered rightly.",
                     {"task", "metric"});
  tokens_per_second_ =
      add("atoll_tokens_per_second",
          "Tokens per second over the last rounds. Falls while the open round takes longer; 0 while nobody "
          "trains, while the disk is full, and after a restart until one whole round is timed.");
  learning_rate_ = add("atoll_learning_rate", "Inner learning rate at the committed position.");
  eta_ = add("atoll_run_eta_seconds",
             "Time until the token budget is used, at the current speed; NaN: unknown.");
  parameters_ = add("atoll_model_parameters", "Number of parameters of the model.");
  rejected_joins_ =
      add("atoll_refused_joins", "Workers whose Join is currently rejected (at most 128 are tracked).");
  disk_free_ = add("atoll_disk_free_bytes", "Free space of the file system that holds the data directory.");
  disk_size_ = add("atoll_disk_size_bytes", "Size of the file system that holds the data directory.");
  const char* const epsilon = "Epsilon spent so far, at privacy.delta; NaN: no bound.";
  epsilon_ = registry_->AddGauge("atoll_privacy_epsilon", epsilon, {{"seen", "pushes"}});
  published_epsilon_ = registry_->AddGauge("atoll_privacy_epsilon", epsilon, {{"seen", "published"}});
  const char* const exchanged =
      "Payload pushed and bytes pulled, over the whole run; pulls before a restart are estimated.";
  pushed_ = MirroredCounter(registry_, kExchanged, exchanged, {{"direction", "push"}});
  pulled_ = MirroredCounter(registry_, kExchanged, exchanged, {{"direction", "pull"}});
  data_parallel_ = MirroredCounter(
      registry_, "atoll_data_parallel_bytes_total",
      "Bytes that plain data parallelism would have moved for the same inner steps, over the whole run.");
}

void StatusMetrics::AddRounds() {
  const auto declare = [this](const char* name, const char* help) {
    registry_->Declare(MetricType::kGauge, name, help, {"fragment"});
  };
  declare(kOpen, "Time for which the round has been open; 0: no open round.");
  declare(kDeadline,
          "Time after which the round closes if it has the minimum of contributions: round.deadline_s.");
  declare(kArrived, "Contributions that have arrived in the open round, without late ones.");
  declare(kExpected, "Arrived contributions plus those that the open round still waits for.");
  declare(
      kQuorum,
      "Contributions needed for a quorum, with which the open round closes before all workers have pushed.");
}

void StatusMetrics::Refresh(const StatusView& status, const std::vector<WorkerView>& live_workers) {
  RefreshRun(status);
  for (const FragmentStatusView& fragment : status.fragments) RefreshRound(fragment);
  RefreshDisk(status.data_directory);
  members_.Refresh(live_workers);
}

void StatusMetrics::RefreshRun(const StatusView& status) {
  if (run_id_ != status.run_id) {
    if (!run_id_.empty()) registry_->RemoveGauge(kRunInfo, run_info_);
    run_id_ = status.run_id;
    run_info_ = registry_->AddGauge(kRunInfo, "", {{"run_id", run_id_}, {"run_name", status.run_name}});
    run_info_.Set(1);
  }
  const double train_loss = status.rounds.empty() ? 0 : status.rounds.back().train_loss;
  train_loss_.Set(train_loss != 0 ? train_loss : kUnknown);
  validation_loss_.Set(status.evaluations.empty() ? kUnknown : status.evaluations.back().loss);
  RefreshTasks(status);
  tokens_per_second_.Set(status.tokens_per_second);
  learning_rate_.Set(status.learning_rate);
  eta_.Set(status.eta_seconds > 0 ? status.eta_seconds : kUnknown);
  parameters_.Set(static_cast<double>(status.parameters));
  rejected_joins_.Set(static_cast<double>(status.refused_joins.size()));
  ShowPrivacy(status.privacy);
  pushed_.Follow(static_cast<double>(status.push_bytes));
  pulled_.Follow(static_cast<double>(status.pull_bytes));
  data_parallel_.Follow(static_cast<double>(status.data_parallel_bytes));
}

void StatusMetrics::RefreshTasks(const StatusView& status) {
  const std::vector<TaskScore> scores = status.scored ? status.scored->tasks : std::vector<TaskScore>();
  std::erase_if(task_scores_, [&](const auto& shown) {
    const bool known = std::ranges::any_of(scores, [&](const TaskScore& score) {
      return score.task == shown.first.first && score.metric == shown.first.second;
    });
    if (!known) registry_->RemoveGauge(kTaskScore, shown.second);
    return !known;
  });
  for (const TaskScore& score : scores) {
    auto [it, added] = task_scores_.try_emplace({score.task, score.metric});
    if (added)
      it->second = registry_->AddGauge(kTaskScore, "", {{"task", score.task}, {"metric", score.metric}});
    it->second.Set(score.value);
  }
}

void StatusMetrics::ShowPrivacy(const std::optional<PrivacyView>& privacy) {
  epsilon_.Set(privacy ? privacy->epsilon.value_or(kUnknown) : kUnknown);
  published_epsilon_.Set(privacy ? privacy->published_epsilon.value_or(kUnknown) : kUnknown);
}

void StatusMetrics::RefreshRound(const FragmentStatusView& fragment) {
  auto [it, added] = rounds_.try_emplace(fragment.id);
  RoundGauges& gauges = it->second;
  if (added) {
    const MetricLabels labels = {{"fragment", std::to_string(fragment.id.value())}};
    gauges = {.open = registry_->AddGauge(kOpen, "", labels),
              .deadline = registry_->AddGauge(kDeadline, "", labels),
              .arrived = registry_->AddGauge(kArrived, "", labels),
              .expected = registry_->AddGauge(kExpected, "", labels),
              .quorum = registry_->AddGauge(kQuorum, "", labels)};
  }
  gauges.open.Set(fragment.open_seconds);
  gauges.deadline.Set(fragment.deadline_seconds);
  gauges.arrived.Set(static_cast<double>(fragment.arrived.size()));
  gauges.expected.Set(static_cast<double>(fragment.arrived.size() + fragment.missing.size()));
  gauges.quorum.Set(fragment.quorum);
}

void StatusMetrics::RefreshDisk(const std::string& directory) {
  struct statvfs disk = {};
  const bool known = !directory.empty() && ::statvfs(directory.c_str(), &disk) == 0;
  const auto block = static_cast<double>(disk.f_frsize);
  disk_free_.Set(known ? block * static_cast<double>(disk.f_bavail) : kUnknown);
  disk_size_.Set(known ? block * static_cast<double>(disk.f_blocks) : kUnknown);
}

}  // namespace atl
