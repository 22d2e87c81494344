#include "common/backoff.h"

#include <algorithm>
#include <cmath>

namespace atl {

Duration Backoff::Bound() const {
  const double maximum = ToSeconds(options_.maximum);
  // In floating point, so that many attempts saturate instead of overflowing.
  const double bound = ToSeconds(options_.initial) * std::pow(options_.multiplier, attempts_);
  return Seconds(std::min(bound, maximum));
}

Duration Backoff::Next() {
  const double bound = ToSeconds(Bound());
  ++attempts_;
  return Seconds(std::uniform_real_distribution<double>(0.1 * bound, bound)(random_));
}

Duration Backoff::NextAtLeast(Duration hint) { return std::max(hint, Duration::zero()) + Next(); }

}  // namespace atl
