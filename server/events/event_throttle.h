#ifndef ATOLL_SERVER_EVENTS_EVENT_THROTTLE_H_
#define ATOLL_SERVER_EVENTS_EVENT_THROTTLE_H_

#include <algorithm>

#include "common/clock.h"

namespace atl {

/// How often something is worth an event: `burst` times at once, then once in `interval` (a token bucket), so
/// that strangers cannot fill the event log. Not thread-safe.
class EventThrottle {
 public:
  /// What one member, or all strangers together, may put into the log.
  static constexpr double kBurst = 20;
  static constexpr Duration kInterval = Seconds(30);

  EventThrottle() : EventThrottle(kBurst, kInterval) {}
  EventThrottle(double burst, Duration interval) : burst_(burst), interval_(interval) {}

  /// Whether to tell it now; counts it if so. `now` never goes back.
  bool Allow(MonoTime now) {
    used_ = std::max(0.0, used_ - ToSeconds(now - at_) / ToSeconds(interval_));
    at_ = now;
    if (used_ + 1 > burst_) return false;
    used_ += 1;
    return true;
  }

 private:
  double burst_;
  Duration interval_;
  double used_ = 0;  // as they drain away
  MonoTime at_ = {};
};

}  // namespace atl

#endif  // ATOLL_SERVER_EVENTS_EVENT_THROTTLE_H_
