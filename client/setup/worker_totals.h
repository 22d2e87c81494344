#ifndef ATOLL_CLIENT_SETUP_WORKER_TOTALS_H_
#define ATOLL_CLIENT_SETUP_WORKER_TOTALS_H_

#include <atomic>
#include <cstdint>

#include "client/sync/forwarding_observer.h"

namespace atl {

/// Counts what a live status shows of a process's whole life. Thread-safe.
class WorkerTotals final : public ForwardingObserver {
 public:
  using ForwardingObserver::ForwardingObserver;

  void OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) override {
    ++steps_;
    tokens_ += step.tokens;
    ForwardingObserver::OnInnerStep(step, learning_rate, compute);
  }
  void OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                Duration transfer) override {
    pulled_bytes_ += wire_bytes;
    ForwardingObserver::OnPulled(fragment, version, wire_bytes, waited, transfer);
  }
  void OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) override {
    pushed_bytes_ += wire_bytes;
    ForwardingObserver::OnPushed(fragment, result, wire_bytes, exchange);
  }

  uint64_t steps() const { return steps_; }
  uint64_t tokens() const { return tokens_; }
  uint64_t pulled_bytes() const { return pulled_bytes_; }
  uint64_t pushed_bytes() const { return pushed_bytes_; }

 private:
  std::atomic<uint64_t> steps_{0};
  std::atomic<uint64_t> tokens_{0};
  std::atomic<uint64_t> pulled_bytes_{0};
  std::atomic<uint64_t> pushed_bytes_{0};
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_WORKER_TOTALS_H_
