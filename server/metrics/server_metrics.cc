#include "server/metrics/server_metrics.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "common/clock.h"
#include "common/rejection_reason.h"
#include "core/median.h"

namespace atl {
namespace {

/// As Prometheus labels, by number; docs/reference/metrics.md lists them.
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
                                     "contribution_suspect",
                                     "join_refused"};
static_assert(kEventLabels.size() == static_cast<size_t>(EventKind::kJoinRefused) + 1);

constexpr char kPublished[] = "atoll_published_version";
constexpr char kStored[] = "atoll_stored_version";

constexpr std::array<const char*, 7> kStateLabels = {"starting", "training", "degraded", "critical",
                                                     "finished", "paused",   "stopped"};

/// The actions that operators can ask for (AdminImpl).
constexpr const char* kActions[] = {"pause",
                                    "resume",
                                    "stop",
                                    "close_round",
                                    "reset_dataset",
                                    "extend_run",
                                    "set_config",
                                    "scale_workers",
                                    "drain_worker",
                                    "restart_worker",
                                    "evict_worker",
                                    "ban_worker",
                                    "unban_worker",
                                    "forget_worker",
                                    "resync_worker",
                                    "checkpoint_create",
                                    "checkpoint_restore",
                                    "checkpoint_delete"};

/// Buckets for a contribution's norm divided by the median of its round.
std::vector<double> RatioBuckets() { return {0.1, 0.25, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 30, 100}; }

}  // namespace

ServerMetrics::ServerMetrics(MetricsRegistry* registry) : registry_(registry) {
  rounds_ = registry_->AddCounter("atoll_rounds_total",
                                  "Rounds closed, which is the number of versions published.");
  round_tokens_ = registry_->AddCounter("atoll_round_tokens_total", "Tokens of the closed rounds.");
  round_contributions_ =
      registry_->AddCounter("atoll_round_contributions_total", "Contributions merged in the closed rounds.");
  push_bytes_ = registry_->AddCounter("atoll_push_received_bytes_total",
                                      "Payload bytes of received contributions, merged or not.");
  pull_bytes_ =
      registry_->AddCounter("atoll_pull_sent_bytes_total", "Bytes sent in pulls, including framing.");
  AddDurations();
  AddContributions();
  AddRunGauges();
  AddActions();
}

void ServerMetrics::AddDurations() {
  const auto add = [this](const char* name, const char* help, const std::vector<double>& buckets) {
    return registry_->AddHistogram(name, help, buckets);
  };
  round_seconds_ = add("atoll_round_duration_seconds",
                       "Time from the publication of a base to the close of its round.", RoundBuckets());
  merge_seconds_ = add("atoll_merge_duration_seconds",
                       "Duration of decoding, merging and the outer step of one round.", DurationBuckets());
  commit_seconds_ = add("atoll_commit_duration_seconds",
                        "Duration of the synced write that commits a version.", ShortDurationBuckets());
  store_seconds_ = add("atoll_store_duration_seconds",
                       "Duration of writing a version's tensors, after the commit.", DurationBuckets());
  push_seconds_ = add("atoll_push_duration_seconds",
                      "Duration of one upload of a contribution, accepted or not.", TransferBuckets());
  pull_seconds_ = add("atoll_pull_duration_seconds",
                      "Duration of one pull, from the answer to the last byte.", TransferBuckets());
  heartbeat_seconds_ =
      add("atoll_heartbeat_duration_seconds", "Duration of one heartbeat, from its arrival to its answer.",
          ShortDurationBuckets());
}

// Series with known labels exist from the start: increase() does not see the first event of a series that
// starts with it.
void ServerMetrics::AddContributions() {
  std::vector<std::string> results = {"accepted", "duplicate", "other", "resource_exhausted"};
  for (size_t i = 1; i <= static_cast<size_t>(RejectionReason::kShuttingDown); ++i) {
    results.push_back(
        absl::AsciiStrToLower(std::string(RejectionReasonName(static_cast<RejectionReason>(i)))));
  }
  for (const std::string& result : results) {
    if (result == "resource_exhausted") continue;
    contributions_[result] = registry_->AddCounter("atoll_contributions_total",
                                                   "Contributions by result: accepted, duplicate, or the "
                                                   "reason of the rejection (docs/reference/wire_format.md).",
                                                   {{"result", result}});
  }
  for (const std::string& result : results) {
    if (result == "accepted" || result == "duplicate") continue;
    joins_rejected_[result] =
        registry_->AddCounter("atoll_joins_refused_total",
                              "Rejected joins of trainers and evaluators, by reason.", {{"reason", result}});
  }
  late_ = registry_->AddCounter(
      "atoll_late_contributions_total",
      "Contributions with an older base than round.mode expects, merged into the open round.");
  for (size_t i = 0; i < kOffences.size(); ++i) {
    offences_[i] = registry_->AddCounter("atoll_offences_total", "Offences by kind.",
                                         {{"kind", std::string(OffenceName(kOffences[i]))}});
  }
  banned_by_rule_ =
      registry_->AddCounter("atoll_workers_banned_by_rule_total", "Workers banned by the offenders rule.");
  guarded_ = registry_->AddCounter("atoll_norm_guard_scaled_total",
                                   "Contributions that the norm guard scaled down to the median norm.");
  norm_ratio_ = registry_->AddHistogram(
      "atoll_contribution_norm_ratio",
      "Norm of a merged contribution divided by the median norm of its round.", RatioBuckets());
  for (const char* verdict : {"valid", "diverged", "forged", "unknown"}) {
    confirmations_[verdict] =
        registry_->AddCounter("atoll_confirmations_total",
                              "Workers' signed hashes of the version that they trained on, compared with the "
                              "published hash; diverged: a worker had other parameters.",
                              {{"verdict", verdict}});
  }
}

void ServerMetrics::AddRunGauges() {
  committed_tokens_ = registry_->AddGauge("atoll_committed_tokens", "Tokens of the committed versions.");
  planned_tokens_ =
      registry_->AddGauge("atoll_planned_tokens", "Token budget of the run. The run ends when it is used.");
  storage_failing_ = registry_->AddGauge("atoll_storage_failing", "1 while commits fail.");
  config_version_ =
      registry_->AddGauge("atoll_config_version", "Version of the newest recorded configuration.");
  last_checkpoint_ =
      registry_->AddGauge("atoll_last_checkpoint_timestamp_seconds",
                          "Creation time of the newest checkpoint, Unix time; 0: no checkpoint.");
  budget_used_ =
      registry_->AddGauge("atoll_contribution_in_flight_bytes", "Payload bytes of contributions in flight.");
  budget_limit_ =
      registry_->AddGauge("atoll_contribution_budget_bytes",
                          "Limit of the payload bytes in flight: limits.contribution_budget_mib.");
  const char* const workers = "Workers by state.";
  active_trainers_ = registry_->AddGauge("atoll_workers", workers, {{"state", "active_trainer"}});
  active_others_ = registry_->AddGauge("atoll_workers", workers, {{"state", "active_other"}});
  lost_ = registry_->AddGauge("atoll_workers", workers, {{"state", "lost"}});
  for (size_t i = 0; i < kStates; ++i) {
    states_[i] = registry_->AddGauge("atoll_run_state", "1 for the current state of the run.",
                                     {{"state", kStateLabels[i]}});
  }
  registry_->Declare(MetricType::kGauge, kPublished, "Newest published version of a fragment.", {"fragment"});
  registry_->Declare(MetricType::kGauge, kStored, "Newest version of a fragment whose tensors are on disk.",
                     {"fragment"});
}

void ServerMetrics::AddActions() {
  for (size_t i = 0; i < kEventLabels.size(); ++i) {
    events_[static_cast<EventKind>(i)] =
        registry_->AddCounter("atoll_events_total", "Events of the run, as printed by atollctl events.",
                              {{"kind", kEventLabels[i]}});
  }
  MutexLock lock(&mutex_);
  for (const char* action : kActions) {
    for (const bool done : {true, false}) AddAction(action, done);
  }
}

Counter& ServerMetrics::AddAction(const std::string& action, bool done) {
  return admin_actions_[{action, done}] =
             registry_->AddCounter("atoll_admin_actions_total", "Actions of operators.",
                                   {{"action", action}, {"result", done ? "done" : "refused"}});
}

void ServerMetrics::OnRoundClosed(const RoundSummaryView& round) {
  rounds_.Increment();
  round_tokens_.Increment(static_cast<double>(round.tokens));
  round_contributions_.Increment(round.contributions);
  round_seconds_.Observe(round.open_seconds);
}

void ServerMetrics::OnContribution(std::string_view result) {
  const auto it = contributions_.find(result);
  (it == contributions_.end() ? contributions_.find("other") : it)->second.Increment();
}

void ServerMetrics::OnJoinRejected(std::string_view reason) {
  const auto it = joins_rejected_.find(reason);
  (it == joins_rejected_.end() ? joins_rejected_.find("other") : it)->second.Increment();
}

void ServerMetrics::OnMergedNorms(std::span<const double> norms, bool guarded) {
  const double median = MedianOfNonZero({norms.begin(), norms.end()});
  if (median <= 0) return;
  for (const double norm : norms) {
    norm_ratio_.Observe(norm / median);
    if (guarded && norm > median) guarded_.Increment();
  }
}

void ServerMetrics::OnOffence(Offence offence) {
  for (size_t i = 0; i < kOffences.size(); ++i) {
    if (kOffences[i] == offence) offences_[i].Increment();
  }
}

void ServerMetrics::OnConfirmation(std::string_view verdict) {
  const auto it = confirmations_.find(verdict);
  if (it != confirmations_.end()) it->second.Increment();
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

void ServerMetrics::OnRunState(RunState state) {
  for (size_t i = 0; i < kStates; ++i) states_[i].Set(static_cast<size_t>(state) == i + 1 ? 1 : 0);
}

void ServerMetrics::OnVersion(FragmentId fragment, Version published, Version stored) {
  MutexLock lock(&mutex_);
  auto [it, added] = fragments_.try_emplace(fragment);
  if (added) {
    const MetricLabels labels = {{"fragment", std::to_string(fragment.value())}};
    it->second.published = registry_->AddGauge(kPublished, "", labels);
    it->second.stored = registry_->AddGauge(kStored, "", labels);
  }
  it->second.published.Set(static_cast<double>(published.value()));
  it->second.stored.Set(static_cast<double>(stored.value()));
}

void ServerMetrics::OnCommittedTokens(uint64_t committed, uint64_t total) {
  committed_tokens_.Set(static_cast<double>(committed));
  planned_tokens_.Set(static_cast<double>(total));
}

void ServerMetrics::OnContributionBudget(uint64_t used, uint64_t limit) {
  budget_used_.Set(static_cast<double>(used));
  budget_limit_.Set(static_cast<double>(limit));
}

void ServerMetrics::OnNewestCheckpoint(int64_t created_unix_ns) {
  last_checkpoint_.Set(static_cast<double>(created_unix_ns) * 1e-9);
}

void ServerMetrics::OnStorageFailing(bool failing) { storage_failing_.Set(failing ? 1 : 0); }
void ServerMetrics::OnConfigVersion(uint64_t version) { config_version_.Set(static_cast<double>(version)); }
void ServerMetrics::OnLateContribution() { late_.Increment(); }

void ServerMetrics::OnAdminAction(std::string_view action, bool done) {
  MutexLock lock(&mutex_);
  const auto it = admin_actions_.find({std::string(action), done});
  (it == admin_actions_.end() ? AddAction(std::string(action), done) : it->second).Increment();
}

void ServerMetrics::OnEvent(EventKind kind) {
  const auto it = events_.find(kind);
  (it == events_.end() ? events_.at(EventKind::kUnknown) : it->second).Increment();
}

}  // namespace atl
