#ifndef ATOLL_CLIENT_SYNC_EXCHANGE_CHANNEL_H_
#define ATOLL_CLIENT_SYNC_EXCHANGE_CHANNEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/sync/delivery.h"
#include "client/sync/metered_connection.h"
#include "client/sync/retry_policy.h"
#include "client/sync/retrying_connection.h"
#include "client/sync/session.h"

namespace atl {

/// Forwards what happens in exchanges beside the training, but for what would say that the worker waits.
class BackgroundObserver final : public WorkerObserver {
 public:
  /// `inner` outlives this object.
  explicit BackgroundObserver(WorkerObserver* inner) : inner_(inner) {}

  void OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                Duration transfer) override {
    inner_->OnPulled(fragment, version, wire_bytes, waited, transfer);
  }
  void OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) override {
    inner_->OnPushed(fragment, result, wire_bytes, exchange);
  }
  void OnRetry(const absl::Status& error, Duration pause) override { inner_->OnRetry(error, pause); }

 private:
  WorkerObserver* const inner_;
};

/// Sleeps until it is told to give up. Thread-safe.
class RevocableSleeper final : public Sleeper {
 public:
  /// `inner` outlives this object.
  explicit RevocableSleeper(Sleeper* inner) : inner_(inner) {}
  bool SleepFor(Duration duration) override { return !revoked_ && inner_->SleepFor(duration) && !revoked_; }
  void Revoke() { revoked_ = true; }

 private:
  Sleeper* const inner_;
  std::atomic<bool> revoked_{false};
};

/// What exchanges beside the training share: their own worker status, so that what they do is not told as
/// what the worker does, and the command to give up. Thread-safe.
class ExchangeSetting {
 public:
  explicit ExchangeSetting(const WorkerContext& context)
      : sleeper_(context.sleeper),
        observer_(context.observer),
        context_{context.clock, &sleeper_, &observer_, &worker_status_, context.log} {}

  /// For the thread whose time this is.
  WorkerContext ContextOf(TimeAccount* time) const {
    WorkerContext context = context_;
    context.time = time;
    return context;
  }
  /// The next versions are waited for no longer: what has been pushed ends with its verdict.
  void StopWaiting() { stopped_waiting_ = true; }
  bool stopped_waiting() const { return stopped_waiting_; }
  /// Nothing is tried again either: exchanges end at the next chance.
  void GiveUp() {
    stopped_waiting_ = true;
    sleeper_.Revoke();
  }

 private:
  std::atomic<bool> stopped_waiting_{false};
  WorkerStatus worker_status_;
  RevocableSleeper sleeper_;
  BackgroundObserver observer_;
  const WorkerContext context_;
};

/// What one exchange at a time works with: calls that are its own. Not thread-safe.
class ExchangeChannel {
 public:
  /// `data` is thread-safe and makes one attempt per call. `time` is of the thread that works with the
  /// channel, and may be null. All pointers outlive this object.
  ExchangeChannel(CoordinatorConnection* data, Session* session, const RetryPolicyOptions& retry_policy,
                  uint64_t seed, const ExchangeSetting* setting, TimeAccount* time)
      : setting_(setting),
        session_(session),
        time_(time),
        retry_policy_(retry_policy, seed, setting->ContextOf(time)),
        metered_(data, setting->ContextOf(time)),
        connection_(&metered_, &retry_policy_),
        delivery_(session, &connection_, &retry_policy_, setting->ContextOf(time)) {}

  Session& session() { return *session_; }
  CoordinatorConnection& connection() { return connection_; }
  Delivery& delivery() { return delivery_; }
  TimeAccount* time() const { return time_; }
  bool waits_for_versions() const { return !setting_->stopped_waiting(); }

  std::vector<std::byte> payload;  // room for what is pulled

 private:
  const ExchangeSetting* const setting_;
  Session* const session_;
  TimeAccount* const time_;
  RetryPolicy retry_policy_;
  MeteredConnection metered_;
  RetryingConnection connection_;
  Delivery delivery_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_EXCHANGE_CHANNEL_H_
