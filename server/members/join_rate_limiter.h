#ifndef ATOLL_SERVER_MEMBERS_JOIN_RATE_LIMITER_H_
#define ATOLL_SERVER_MEMBERS_JOIN_RATE_LIMITER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "common/clock.h"

namespace atl {

/// Bounds how often Join is called: each may write to the disk, and each makes a superseded process begin
/// again. Two token buckets, one for all and one of half its size for each address, so that one machine that
/// calls in a loop leaves room for the others. Pure state, not thread-safe.
class JoinRateLimiter {
 public:
  /// What may come at once, in seconds of the rate: a run's workers are started together.
  static constexpr double kBurstSeconds = 5;
  /// Addresses that are remembered; beyond it those that have not called for the longest share one bucket.
  static constexpr size_t kMostAddresses = 4096;

  explicit JoinRateLimiter(double per_second) : rate_(per_second) {}

  /// From here on.
  void SetRate(double per_second) { rate_ = per_second; }

  /// Nothing when the call may go on, and it is counted; else how long to wait before it is tried again.
  /// `address` may be empty: a caller in this process, which is not bounded by address.
  std::optional<Duration> Enter(const std::string& address, MonoTime now);

 private:
  /// Calls made so far, as they drain away: at most rate * kBurstSeconds.
  struct Bucket {
    double used = 0;
    MonoTime at{};
  };
  static void Drain(Bucket& bucket, double rate, MonoTime now);
  void ForgetIdle(MonoTime now);

  double rate_;
  Bucket all_;
  std::map<std::string, Bucket> by_address_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_JOIN_RATE_LIMITER_H_
