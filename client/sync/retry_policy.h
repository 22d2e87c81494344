#ifndef ATOLL_CLIENT_SYNC_RETRY_POLICY_H_
#define ATOLL_CLIENT_SYNC_RETRY_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/sync/context.h"
#include "common/backoff.h"
#include "common/clock.h"

namespace atl {

struct RetryPolicyOptions {
  BackoffOptions backoff{.initial = Seconds(0.2), .maximum = Seconds(5), .multiplier = 2};
  Duration log_every = Seconds(10);
  /// A worker that never got an answer gives up when its attempts fail for so long in ways that look
  /// permanent (LooksPermanent). nullopt: it waits for as long as it takes.
  std::optional<Duration> give_up_after = std::nullopt;
};

/// Waiting for a coordinator that is away: exponential backoff with full jitter for as long as it takes, with
/// a line in the log when it begins, one every `log_every` after, and one when it is over. Not thread-safe.
class RetryPolicy {
 public:
  RetryPolicy(const RetryPolicyOptions& options, uint64_t seed, const WorkerContext& context)
      : options_(options), backoff_(options.backoff, seed), context_(context) {}

  /// After a failed attempt at `what` ("to push version 12"): sleeps. False: the worker is stopping, give up.
  bool Pause(const absl::Status& error, const std::string& what);
  /// After an attempt that succeeded.
  void Over();
  /// How long the wait has taken that is not over; 0: there is none.
  Duration waited() const;

  /// The coordinator has answered something: from now on it is waited for, whatever happens.
  void Reached() { reached_ = true; }
  /// After a failed attempt, before Pause, which then says when it would give up: whether to give up
  /// (RetryPolicyOptions::give_up_after).
  bool GivesUp(const absl::Status& error);

 private:
  void Say(const absl::Status& error, const std::string& what, Duration pause);

  const RetryPolicyOptions options_;
  Backoff backoff_;
  const WorkerContext context_;
  std::optional<MonoTime> waiting_since_;
  std::optional<MonoTime> hopeless_since_;
  bool reached_ = false;
  MonoTime last_said_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_RETRY_POLICY_H_
