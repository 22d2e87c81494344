#ifndef ATOLL_COMMON_BACKOFF_H_
#define ATOLL_COMMON_BACKOFF_H_

#include <cstdint>
#include <random>

#include "common/clock.h"

namespace atl {

struct BackoffOptions {
  Duration initial = Seconds(0.1);
  Duration maximum = Seconds(30);
  double multiplier = 2;
};

/// How long to wait before the next attempt: exponential, with full jitter (a uniform draw between 0 and the
/// current bound, M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog 2015), so that workers
/// that lost the same coordinator do not all return at once. A draw is never below a tenth of the bound, so
/// callers never spin. Pure: no clock, no sleep. Not thread-safe.
class Backoff {
 public:
  Backoff(const BackoffOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  Duration Next();
  /// Like Next, but at least `hint` (a server's RetryInfo), with the jitter added to the hint.
  Duration NextAtLeast(Duration hint);
  void Reset() { attempts_ = 0; }
  int attempts() const { return attempts_; }

 private:
  Duration Bound() const;

  const BackoffOptions options_;
  std::mt19937_64 random_;
  int attempts_ = 0;
};

}  // namespace atl

#endif  // ATOLL_COMMON_BACKOFF_H_
