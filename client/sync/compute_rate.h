#ifndef ATOLL_CLIENT_SYNC_COMPUTE_RATE_H_
#define ATOLL_CLIENT_SYNC_COMPUTE_RATE_H_

#include <cmath>
#include <cstdint>

#include "common/clock.h"

namespace atl {

/// Tokens per second of compute time over the last inner steps, across rounds. Each step has the weight
/// e^(-t / kWindow), where t is the compute time since that step. A single fast or slow step hardly changes
/// the rate, unless it takes as long as the window. Not thread-safe.
class ComputeRate {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(10);

  void Add(uint64_t tokens, Duration took) {
    const double seconds = ToSeconds(took);
    const double fade = std::exp(-seconds / ToSeconds(kWindow));
    tokens_ = tokens_ * fade + static_cast<double>(tokens);
    seconds_ = seconds_ * fade + seconds;
  }

  /// 0 before the first step.
  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }

 private:
  double tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_COMPUTE_RATE_H_
