#ifndef ATOLL_BENCH_WAN_JOURNAL_H_
#define ATOLL_BENCH_WAN_JOURNAL_H_

#include <cstdint>
#include <cstdio>

#include "client/sync/observer.h"
#include "common/mutex.h"
#include "nlohmann/json.hpp"

namespace atl {

/// Writes what happens in a worker as JSON, one object a line, flushed at once:
///
///   {"t": seconds of the steady clock, "event": "step" (the first of the process), "round", "pushed",
///    "pulled", "used", "skipped" or "retry", "steps": inner steps since the process started,
///    "compute": seconds spent in them, ...}
///
/// Thread-safe.
class Journal final : public WorkerObserver {
 public:
  /// `clock` and `out` outlive this.
  Journal(const Clock* clock, std::FILE* out) : clock_(clock), out_(out) {}

  void OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) override;
  void OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                Duration transfer) override;
  void OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) override;
  void OnUsed(FragmentId fragment, Version version, uint64_t steps_since_push) override;
  void OnPushSkipped(FragmentId fragment) override;
  void OnRound(uint32_t steps, uint64_t tokens, double mean_loss, Duration duration) override;
  void OnRetry(const absl::Status& error, Duration pause) override;

 private:
  void Write(nlohmann::json event) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteLocked(nlohmann::json event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  std::FILE* const out_;
  Mutex mutex_;
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  Duration compute_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace atl

#endif  // ATOLL_BENCH_WAN_JOURNAL_H_
