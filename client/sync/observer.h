#ifndef ATOLL_CLIENT_SYNC_OBSERVER_H_
#define ATOLL_CLIENT_SYNC_OBSERVER_H_

#include <cstdint>

#include "client/sync/connection.h"
#include "client/sync/replica.h"
#include "common/clock.h"
#include "common/ids.h"

namespace atl {

enum class PushResultKind : uint8_t {
  kAccepted,   // on the coordinator's disk
  kDuplicate,  // it was there already
  kRejected,   // will never count; its content returned to the residual
  kDropped,    // not sent or not wanted: not finite, or the worker is leaving
};

/// What happens in a worker, for metrics. Every method may be called from any thread of the worker, must not
/// block and must not call back. Durations are of the injected clock. The default does nothing.
class WorkerObserver {
 public:
  virtual ~WorkerObserver() = default;

  /// After every successful Join; `rejoin` is false for the first of the process.
  virtual void OnJoined(const JoinedRun& info, bool rejoin) {}
  virtual void OnPhase(WorkerPhase phase) {}
  /// One inner step: `compute` is its wall time.
  virtual void OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) {}
  /// Parameters of `version` are in the replica's hands: `waited` for the coordinator, then `transfer`.
  virtual void OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                        Duration transfer) {}
  /// The fate of one contribution is known. `wire_bytes` counts every attempt; `exchange` from the first byte
  /// to the verdict.
  virtual void OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) {}
  /// Overlapped: what was published replaces or is blended into the local parameters, so many inner steps
  /// after the push that it answers.
  virtual void OnUsed(FragmentId fragment, Version version, uint64_t steps_since_push) {}
  /// Overlapped: a fragment was due, but its last push is unanswered.
  virtual void OnPushSkipped(FragmentId fragment) {}
  /// A whole round, from adopting the base to the verdict on its push.
  virtual void OnRound(uint32_t steps, uint64_t tokens, double mean_loss, Duration duration) {}
  /// A round was thrown away because a loss or a gradient was not finite.
  virtual void OnRoundNotFinite() {}
  virtual void OnEvaluated(const EvaluationReport& report, Duration compute) {}
  virtual void OnHeartbeat(bool ok, Duration round_trip) {}
  /// A call failed and will be tried again after `pause`.
  virtual void OnRetry(const absl::Status& error, Duration pause) {}
  /// Time that was spent neither computing nor exchanging.
  virtual void OnWaited(Duration waited) {}
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_OBSERVER_H_
