#ifndef ATOLL_CLIENT_METRICS_WORKER_METRICS_H_
#define ATOLL_CLIENT_METRICS_WORKER_METRICS_H_

#include <map>
#include <string>
#include <vector>

#include "client/sync/observer.h"
#include "common/mutex.h"
#include "core/time_use.h"
#include "monitoring/metrics.h"

namespace atl {

/// Counts what happens in a worker. Every metric with its meaning: docs/reference/metrics.md. Thread-safe.
class WorkerMetrics final : public WorkerObserver {
 public:
  /// `registry` outlives this.
  explicit WorkerMetrics(MetricsRegistry* registry);

  void OnJoined(const JoinedRun& info, bool rejoin) override;
  void OnPhase(WorkerPhase phase) override;
  void OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) override;
  void OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                Duration transfer) override;
  void OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) override;
  void OnUsed(FragmentId fragment, Version version, uint64_t steps_since_push) override;
  void OnPushSkipped(FragmentId fragment) override;
  void OnRound(uint32_t steps, uint64_t tokens, double mean_loss, Duration duration) override;
  void OnRoundNotFinite() override;
  void OnEvaluated(const EvaluationReport& report, Duration compute) override;
  void OnHeartbeat(bool ok, Duration round_trip) override;
  void OnRetry(const absl::Status& error, Duration pause) override;
  void OnWaited(Duration waited) override;

  /// Where the time went up to now, before a scrape. By one thread at a time.
  void SetTimes(const TimeSpent& training, const TimeSpent& exchanges);

 private:
  void AddCounters();
  void AddDurations();
  void AddGauges();
  void AddTimes();

  MetricsRegistry* const registry_;
  Counter first_joins_;
  Counter rejoins_;
  Counter inner_steps_;
  Counter tokens_;
  Counter rounds_;
  Counter rounds_not_finite_;
  Counter pushes_skipped_;
  Counter answers_used_;
  Counter answer_steps_;
  Counter compute_seconds_;
  Counter wait_seconds_;
  Counter exchange_seconds_;
  Counter evaluate_seconds_;
  std::vector<MirroredCounter> training_times_;  // in the order of TrainingUses()
  std::vector<MirroredCounter> exchange_times_;  // in the order of ExchangeUses()
  Counter push_bytes_;
  Counter pull_bytes_;
  Counter heartbeats_ok_;
  Counter heartbeats_failed_;
  std::map<PushResultKind, Counter> contributions_;  // constant after construction
  std::map<WorkerPhase, Gauge> phases_;              // constant after construction
  std::map<absl::StatusCode, Counter> retries_;      // constant after construction
  Histogram step_seconds_;
  Histogram round_seconds_;
  Histogram pull_seconds_;
  Histogram push_seconds_;
  Histogram heartbeat_seconds_;
  Gauge loss_;
  Gauge round_loss_;
  Gauge gradient_norm_;
  Gauge learning_rate_;
  Gauge validation_loss_;
  Gauge connected_;

  Mutex mutex_;
  std::map<FragmentId, Gauge> base_versions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_METRICS_WORKER_METRICS_H_
