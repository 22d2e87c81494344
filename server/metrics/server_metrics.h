#ifndef ATOLL_SERVER_METRICS_SERVER_METRICS_H_
#define ATOLL_SERVER_METRICS_SERVER_METRICS_H_

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/mutex.h"
#include "monitoring/metrics.h"
#include "server/events/observer.h"

namespace atl {

/// Counts what happens in a coordinator. Every metric with its meaning: docs/reference/metrics.md.
class ServerMetrics final : public CoordinatorObserver {
 public:
  /// `registry` outlives this.
  explicit ServerMetrics(MetricsRegistry* registry);

  void OnRoundClosed(const RoundSummaryView& round) override;
  void OnContribution(std::string_view result) override;
  void OnPush(uint64_t bytes, double seconds) override;
  void OnPullBytes(uint64_t bytes) override;
  void OnMergedNorms(std::span<const double> norms, bool guarded) override;
  void OnMergeSeconds(double seconds) override;
  void OnCommitSeconds(double seconds) override;
  void OnStoreSeconds(double seconds) override;
  void OnWorkers(uint32_t active_trainers, uint32_t active_others, uint32_t lost) override;
  void OnRunState(RunState state) override;
  void OnVersion(FragmentId fragment, Version published, Version stored) override;
  void OnCommittedTokens(uint64_t committed, uint64_t total) override;
  void OnStorageFailing(bool failing) override;
  void OnContributionBudget(uint64_t used, uint64_t limit) override;
  void OnNewestCheckpoint(int64_t created_unix_ns) override;
  void OnConfirmation(std::string_view verdict) override;
  void OnConfigVersion(uint64_t version) override;
  void OnLateContribution() override;
  void OnOffence(Offence offence) override;
  void OnBannedByRule() override { banned_by_rule_.Increment(); }
  void OnEvent(EventKind kind) override;
  void OnAdminAction(std::string_view action, bool done) override;
  void OnJoinRejected(std::string_view reason) override;

  /// Counts one completely streamed pull: seconds from the answer to the last byte. Called by the RPC layer.
  void OnPullStreamed(double seconds);
  /// Counts one heartbeat, from its arrival to its answer. Called by the RPC layer.
  void OnHeartbeat(double seconds) { heartbeat_seconds_.Observe(seconds); }

 private:
  struct FragmentGauges {
    Gauge published;
    Gauge stored;
  };
  static constexpr size_t kStates = 7;

  void AddDurations();
  void AddRunGauges();
  void AddContributions();
  void AddActions();
  Counter& AddAction(const std::string& action, bool done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  MetricsRegistry* const registry_;
  Counter rounds_;
  Counter round_tokens_;
  Counter round_contributions_;
  Counter push_bytes_;
  Counter pull_bytes_;
  Histogram round_seconds_;
  Histogram merge_seconds_;
  Histogram commit_seconds_;
  Histogram store_seconds_;
  Histogram push_seconds_;
  Histogram pull_seconds_;
  Histogram heartbeat_seconds_;
  Gauge committed_tokens_;
  Gauge planned_tokens_;
  Gauge storage_failing_;
  Gauge config_version_;
  Gauge last_checkpoint_;
  Gauge budget_used_;
  Gauge budget_limit_;
  Counter late_;
  Counter guarded_;
  std::array<Counter, kOffences.size()> offences_;  // as kOffences
  Counter banned_by_rule_;
  Histogram norm_ratio_;
  Gauge active_trainers_;
  Gauge active_others_;
  Gauge lost_;
  std::array<Gauge, kStates> states_;  // by RunState - 1

  std::map<std::string, Counter, std::less<>> contributions_;  // constant after construction, as the next
  std::map<std::string, Counter, std::less<>> joins_rejected_;
  std::map<std::string, Counter, std::less<>> confirmations_;
  std::map<EventKind, Counter> events_;

  Mutex mutex_;
  std::map<std::pair<std::string, bool>, Counter> admin_actions_ ABSL_GUARDED_BY(mutex_);
  std::map<FragmentId, FragmentGauges> fragments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_METRICS_SERVER_METRICS_H_
