#ifndef ATOLL_CLIENT_SYNC_FORWARDING_OBSERVER_H_
#define ATOLL_CLIENT_SYNC_FORWARDING_OBSERVER_H_

#include "client/sync/observer.h"

namespace atl {

/// Hands everything on to the next observer, which outlives it. A base for observers that look at a part.
class ForwardingObserver : public WorkerObserver {
 public:
  explicit ForwardingObserver(WorkerObserver* next) : next_(next) {}

  void OnJoined(const JoinedRun& info, bool rejoin) override { next_->OnJoined(info, rejoin); }
  void OnPhase(WorkerPhase phase) override { next_->OnPhase(phase); }
  void OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) override {
    next_->OnInnerStep(step, learning_rate, compute);
  }
  void OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                Duration transfer) override {
    next_->OnPulled(fragment, version, wire_bytes, waited, transfer);
  }
  void OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) override {
    next_->OnPushed(fragment, result, wire_bytes, exchange);
  }
  void OnUsed(FragmentId fragment, Version version, uint64_t steps_since_push) override {
    next_->OnUsed(fragment, version, steps_since_push);
  }
  void OnPushSkipped(FragmentId fragment) override { next_->OnPushSkipped(fragment); }
  void OnRound(uint32_t steps, uint64_t tokens, double mean_loss, Duration duration) override {
    next_->OnRound(steps, tokens, mean_loss, duration);
  }
  void OnRoundNotFinite() override { next_->OnRoundNotFinite(); }
  void OnEvaluated(const EvaluationReport& report, Duration compute) override {
    next_->OnEvaluated(report, compute);
  }
  void OnHeartbeat(bool ok, Duration round_trip) override { next_->OnHeartbeat(ok, round_trip); }
  void OnRetry(const absl::Status& error, Duration pause) override { next_->OnRetry(error, pause); }
  void OnWaited(Duration waited) override { next_->OnWaited(waited); }

 private:
  WorkerObserver* const next_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_FORWARDING_OBSERVER_H_
