#ifndef ATOLL_CLI_OVERLAP_FORECAST_H_
#define ATOLL_CLI_OVERLAP_FORECAST_H_

#include <cstdint>

namespace atl {

/// A run whose exchanges overlap with its training. Bytes are those of one fragment of one worker, rates are
/// bytes a second in each direction.
struct OverlappedTraffic {
  uint32_t steps = 1;  // H
  uint32_t fragments = 1;
  uint32_t delay_steps = 0;    // < steps
  uint32_t max_in_flight = 1;  // pushes of one worker on their way
  uint32_t workers = 1;
  double step_s = 0;  // of the training thread, its other work included; > 0
  double push_bytes = 0;
  double pull_bytes = 0;
  double worker_rate = 0;       // of each worker's link
  double coordinator_rate = 0;  // of the coordinator's, which all workers share
  double latency_s = 0;         // there and back
  double push_start_s = 0;      // until a push, a pull, has reached the speed of its link
  double pull_start_s = 0;
  double merge_s = 0;
};

/// Seconds from one push of a fragment to its next, the mean of eight simulated runs: the workers'
/// FragmentSchedule on links that their transfers share equally, event by event. A link that is too thin
/// makes pushes be passed over, for which the other workers wait, so this grows by whole cycles where no
/// formula does. The same traffic gives the same answer. Takes some 0.1 s for 4 fragments of 50 steps.
double ForecastSecondsBetweenPushes(const OverlappedTraffic& traffic);

}  // namespace atl

#endif  // ATOLL_CLI_OVERLAP_FORECAST_H_
