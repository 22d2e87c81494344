#ifndef ATOLL_CLIENT_SYNC_FRAGMENT_EXCHANGE_H_
#define ATOLL_CLIENT_SYNC_FRAGMENT_EXCHANGE_H_

#include <atomic>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "client/sync/exchange_runner.h"
#include "client/sync/parameter_puller.h"
#include "client/sync/pseudo_gradient_encoder.h"
#include "client/sync/resume_state.h"
#include "common/mutex.h"

namespace atl {

/// What came of one exchange.
struct ExchangeAnswer {
  absl::Status status;                                  // not OK: it came to no end
  std::optional<DeliveryReport> report = std::nullopt;  // of the push, if there was one
  std::optional<PulledVersion> pulled = std::nullopt;   // kParameters or kRunFinished; none: not finite
  Duration waited{};                                    // at the coordinator, for the others
};

/// One fragment on its way to the coordinator and back: encode, keep, push, wait for the next version,
/// decode. While it is away, the encoder and the buffer are the exchange's; base.values are read by both and
/// written by nobody. Start and Take are the training thread's.
class FragmentExchange {
 public:
  struct Parts {
    const FragmentBase* base = nullptr;
    PseudoGradientEncoder* encoder = nullptr;
    PushJournal* push_journal = nullptr;
    const ResumeState* resume_state = nullptr;
    WorkerStatus* worker_status = nullptr;  // the worker's: confirmations go there
    ExchangeRunner* runner = nullptr;
    PullEncoding pull;
  };
  /// All pointers outlive this object, and the exchange ends before they do (ExchangeRunner::Finish).
  explicit FragmentExchange(const Parts& parts) : parts_(parts), buffer_(parts.base->layout.elements) {}

  bool away() const { return away_; }
  /// The coordinator's verdict on the push is still to come.
  bool unacknowledged() const { return away_ && !acknowledged_; }

  /// Room for the pseudo-gradient; after Take for what was published. Not while it is away.
  std::vector<float>& buffer() { return buffer_; }

  /// Sends what is in the buffer, then waits for a version above the base. False: no channel is free.
  /// `saves_round`: the round that was captured is saved as soon as the push is kept.
  bool StartPush(const PushHeader& claims, bool saves_round);
  /// Only waits for a version above `after`; none: takes the head.
  bool StartPull(std::optional<Version> after);
  /// The head, on the calling thread.
  ExchangeAnswer PullHead();
  /// An answer is there, and what it is; Take ends the exchange.
  const ExchangeAnswer* Peek() ABSL_LOCKS_EXCLUDED(mutex_);
  ExchangeAnswer Take() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool Start(const std::optional<PushHeader>& claims, std::optional<Version> after);
  void Run(ExchangeChannel& channel, const std::optional<PushHeader>& claims, std::optional<Version> after);
  absl::Status Encode(ExchangeChannel& channel, const PushHeader& claims);
  /// Whether there is a version to wait for.
  bool Push(ExchangeChannel& channel, const PushHeader& claims, ExchangeAnswer& answer);
  void Pull(ExchangeChannel& channel, std::optional<Version> after, ExchangeAnswer& answer);
  /// False: there is more to pull, with `request`.
  absl::StatusOr<bool> Decode(ExchangeChannel& channel, const PulledVersion& pulled, PullRequest& request);

  const Parts parts_;
  std::vector<float> buffer_;
  bool away_ = false;
  bool saves_round_ = false;  // constant while it is away
  std::atomic<bool> acknowledged_{false};
  Mutex mutex_;
  std::optional<ExchangeAnswer> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_FRAGMENT_EXCHANGE_H_
