#include "server/metrics/server_metrics.h"

#include <limits>

#include "common/clock.h"

namespace atoll {
namespace {

/// As Prometheus labels, by number; docs/metrics.md lists them.
constexpr std::array kEventLabels = {"other",
                                     "worker_joined",
                                     "worker_left",
                                     "worker_lost",
                                     "seeded",
                                     "round_closed",
                                     "evaluated",
                                     "contribution_refused",
                                     "run_held",
                                     "run_finished",
                                     "storage_failing",
                                     "storage_recovered",
                                     "coordinator_started",
                                     "worker_returned",
                                     "admin_action",
                                     "replica_diverged",
                                     "checkpoint_created",
                                     "checkpoint_deleted",
                                     "checkpoint_failed",
                                     "run_restored",
                                     "config_changed",
                                     "worker_launched",
                                     "worker_exited",
                                     "run_paused",
                                     "run_resumed",
                                     "run_stopped",
                                     "worker_drained",
                                     "worker_banned",
                                     "contribution_suspect"};
static_assert(kEventLabels.size() == static_cast<size_t>(EventKind::kContributionSuspect) + 1);

std::string_view EventLabel(EventKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kEventLabels.size() ? kEventLabels[index] : "other";
}

constexpr std::array<const char*, 7> kStateLabels = {"starting", "training", "degraded", "critical",
                                                     "finished", "paused",   "stopped"};

}  // namespace

ServerMetrics::ServerMetrics(MetricsRegistry* registry) : registry_(registry) {
  rounds_ = registry_->AddCounter("atoll_rounds_total", "Rounds closed, that is versions published.");
  round_tokens_ =
      registry_->AddCounter("atoll_round_tokens_total", "Tokens behind the rounds that were closed.");
  push_bytes_ = registry_->AddCounter("atoll_push_received_bytes_total",
                                      "Payload of contributions received, counted or not.");
  pull_bytes_ = registry_->AddCounter("atoll_pull_sent_bytes_total", "Sent in pulls, framing included.");
  AddDurations();
  AddRunGauges();
}

void ServerMetrics::AddDurations() {
  const auto add = [this](const char* name, const char* help) {
    return registry_->AddHistogram(name, help, DurationBuckets());
  };
  round_seconds_ =
      add("atoll_round_duration_seconds", "From the publication of a base to the close of its round.");
  merge_seconds_ = add("atoll_merge_duration_seconds", "Decoding, merging and the outer step of one round.");
  commit_seconds_ = add("atoll_commit_duration_seconds", "The synced record that makes a version exist.");
  store_seconds_ = add("atoll_store_duration_seconds", "Writing a version's tensors behind it.");
  push_seconds_ = add("atoll_push_duration_seconds", "One upload of a contribution, well or not.");
  pull_seconds_ = add("atoll_pull_duration_seconds", "One pull, from the answer to the last byte.");
  heartbeat_seconds_ =
      add("atoll_heartbeat_duration_seconds", "One heartbeat, from its arrival here to its answer.");
}

void ServerMetrics::AddRunGauges() {
  train_loss_ =
      registry_->AddGauge("atoll_train_loss", "Mean training loss of the last round, nats per token.");
  validation_loss_ = registry_->AddGauge(
      "atoll_validation_loss", "Loss of the published parameters on held-out text, nats per token.");
  train_loss_.Set(std::numeric_limits<double>::quiet_NaN());  // not known yet
  validation_loss_.Set(std::numeric_limits<double>::quiet_NaN());
  committed_tokens_ = registry_->AddGauge("atoll_committed_tokens", "Tokens behind the committed versions.");
  planned_tokens_ = registry_->AddGauge("atoll_planned_tokens", "The token budget that ends the run.");
  storage_failing_ = registry_->AddGauge("atoll_storage_failing", "1 while commits fail.");
  config_version_ =
      registry_->AddGauge("atoll_config_version", "The recorded configuration that is the newest.");
  last_checkpoint_ = registry_->AddGauge("atoll_last_checkpoint_timestamp_seconds",
                                         "When this process last made a checkpoint, Unix time; 0: not yet.");
  late_ = registry_->AddCounter("atoll_late_contributions_total",
                                "Contributions to an earlier base that were folded into the open round.");
  for (size_t i = 0; i < kOffences.size(); ++i) {
    offences_[i] =
        registry_->AddCounter("atoll_offences_total", "Contributions by what is held against them.",
                              {{"kind", std::string(OffenceName(kOffences[i]))}});
  }
  banned_by_rule_ = registry_->AddCounter("atoll_workers_banned_by_rule_total",
                                          "Workers that the rule of offenders banned.");
  diverged_ = registry_->AddCounter("atoll_diverged_replicas_total",
                                    "Times that a worker held other parameters than were published.");
  const char* const workers = "Workers by what they are.";
  active_trainers_ = registry_->AddGauge("atoll_workers", workers, {{"state", "active_trainer"}});
  active_others_ = registry_->AddGauge("atoll_workers", workers, {{"state", "active_other"}});
  lost_ = registry_->AddGauge("atoll_workers", workers, {{"state", "lost"}});
  for (size_t i = 0; i < kStates; ++i) {
    states_[i] = registry_->AddGauge("atoll_run_state", "1 for the state that the run is in.",
                                     {{"state", kStateLabels[i]}});
  }
}

void ServerMetrics::OnRoundClosed(const RoundSummaryView& round) {
  rounds_.Increment();
  round_tokens_.Increment(static_cast<double>(round.tokens));
  round_seconds_.Observe(round.open_seconds);
  train_loss_.Set(round.train_loss);
}

void ServerMetrics::OnContribution(std::string_view result) {
  MutexLock lock(&mutex_);
  auto it = contributions_.find(result);
  if (it == contributions_.end()) {
    const std::string label(result);
    it = contributions_
             .emplace(label,
                      registry_->AddCounter("atoll_contributions_total",
                                            "Contributions by what became of them.", {{"result", label}}))
             .first;
  }
  it->second.Increment();
}

void ServerMetrics::OnPush(uint64_t bytes, double seconds) {
  push_bytes_.Increment(static_cast<double>(bytes));
  push_seconds_.Observe(seconds);
}

void ServerMetrics::OnPullBytes(uint64_t bytes) { pull_bytes_.Increment(static_cast<double>(bytes)); }
void ServerMetrics::OnPullStreamed(double seconds) { pull_seconds_.Observe(seconds); }
void ServerMetrics::OnMergeSeconds(double seconds) { merge_seconds_.Observe(seconds); }
void ServerMetrics::OnCommitSeconds(double seconds) { commit_seconds_.Observe(seconds); }
void ServerMetrics::OnStoreSeconds(double seconds) { store_seconds_.Observe(seconds); }

void ServerMetrics::OnWorkers(uint32_t active_trainers, uint32_t active_others, uint32_t lost) {
  active_trainers_.Set(active_trainers);
  active_others_.Set(active_others);
  lost_.Set(lost);
}

void ServerMetrics::OnRunState(RunStateView state) {
  for (size_t i = 0; i < kStates; ++i) states_[i].Set(static_cast<size_t>(state) == i + 1 ? 1 : 0);
}

void ServerMetrics::OnVersion(FragmentId fragment, Version published, Version stored) {
  MutexLock lock(&mutex_);
  auto [it, added] = fragments_.try_emplace(fragment);
  if (added) {
    const MetricLabels labels = {{"fragment", std::to_string(fragment.value())}};
    it->second.published = registry_->AddGauge("atoll_published_version", "The head of a fragment.", labels);
    it->second.stored = registry_->AddGauge(
        "atoll_stored_version", "The newest version of a fragment whose tensors are on disk.", labels);
  }
  it->second.published.Set(static_cast<double>(published.value()));
  it->second.stored.Set(static_cast<double>(stored.value()));
}

void ServerMetrics::OnCommittedTokens(uint64_t committed, uint64_t total) {
  committed_tokens_.Set(static_cast<double>(committed));
  planned_tokens_.Set(static_cast<double>(total));
}

void ServerMetrics::OnStorageFailing(bool failing) { storage_failing_.Set(failing ? 1 : 0); }
void ServerMetrics::OnEvaluation(const EvaluationView& evaluation) { validation_loss_.Set(evaluation.loss); }

void ServerMetrics::OnConfigVersion(uint64_t version) { config_version_.Set(static_cast<double>(version)); }
void ServerMetrics::OnLateContribution() { late_.Increment(); }

void ServerMetrics::OnOffence(Offence offence) {
  for (size_t i = 0; i < kOffences.size(); ++i) {
    if (kOffences[i] == offence) offences_[i].Increment();
  }
}

void ServerMetrics::OnAdminAction(std::string_view action, bool done) {
  MutexLock lock(&mutex_);
  const std::string name(action);
  auto [it, added] = admin_actions_.try_emplace({name, done});
  if (added) {
    it->second = registry_->AddCounter("atoll_admin_actions_total", "What operators asked for.",
                                       {{"action", name}, {"result", done ? "done" : "refused"}});
  }
  it->second.Increment();
}

void ServerMetrics::OnEvent(EventKind kind) {
  if (kind == EventKind::kReplicaDiverged) diverged_.Increment();
  if (kind == EventKind::kCheckpointCreated) {
    last_checkpoint_.Set(ToSeconds(SystemClock().WallNow().time_since_epoch()));
  }
  MutexLock lock(&mutex_);
  auto [it, added] = events_.try_emplace(kind);
  if (added) {
    it->second = registry_->AddCounter("atoll_events_total", "Milestones of the run.",
                                       {{"kind", std::string(EventLabel(kind))}});
  }
  it->second.Increment();
}

}  // namespace atoll
