#ifndef ATOLL_CORE_PACE_H_
#define ATOLL_CORE_PACE_H_

#include <cstdint>
#include <span>

#include "common/clock.h"

namespace atl {

/// The speed of one worker as seen by the coordinator: inner steps of a contribution, divided by the time
/// from its plan to its arrival. The time deliberately includes transfers, because they also decide when the
/// worker arrives; a plan based on this speed makes all workers arrive together. Exponential moving average
/// of the rate (not of the time), so one freeze costs at most kWeight of the value. In memory only: after a
/// restart it is learned from the round records (WorkAssignments::LearnPace).
class PaceEstimate {
 public:
  static constexpr double kWeight = 0.3;  // of the newest measurement

  /// Ignores measurements without steps or without time.
  void Add(uint32_t steps, Duration took);
  /// Inner steps per second; 0: not known.
  double steps_per_second() const { return rate_; }

 private:
  double rate_ = 0;
};

/// A worker's H stays within these multiples of the run's.
inline constexpr uint32_t kPaceRange = 4;

/// The most inner steps that PacedSteps gives.
uint32_t MostPacedSteps(uint32_t steps);

/// Inner steps for a worker of this rate, so that all of `rates` (the live trainers, this one among them)
/// arrive together: H_w = T * rate_w with the one T for which the mean over those whose rate is known is
/// `steps`, each held within steps/4 .. 4*steps and at least 1. A rate of 0 is not known, and gets `steps`.
/// With one known rate that is `steps` too.
uint32_t PacedSteps(double rate, std::span<const double> rates, uint32_t steps);

}  // namespace atl

#endif  // ATOLL_CORE_PACE_H_
