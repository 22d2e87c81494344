#ifndef ATOLL_CLI_OVERLAP_FORECAST_H_
#define ATOLL_CLI_OVERLAP_FORECAST_H_

#include <cstdint>

namespace atl {

/// A run whose exchanges overlap with its training. Bytes are per fragment and worker; rates are bytes per
/// second in each direction.
struct OverlappedTraffic {
  uint32_t steps = 1;  // H
  uint32_t fragments = 1;
  uint32_t delay_steps = 0;    // < steps
  uint32_t max_in_flight = 1;  // maximum pushes of one worker in flight
  uint32_t workers = 1;
  double step_s = 0;  // of the training thread, including its other work; > 0
  double push_bytes = 0;
  double pull_bytes = 0;
  double worker_rate = 0;       // of each worker's link
  double coordinator_rate = 0;  // of the coordinator's link, which all workers share
  double latency_s = 0;         // round trip
  double push_start_s = 0;      // until a push or a pull has reached the speed of its link
  double pull_start_s = 0;
  double merge_s = 0;
};

/// Mean seconds from one push of a fragment to its next, from eight simulated runs. The simulation runs the
/// workers' FragmentSchedule event by event, on links that their transfers share equally. A simulation is
/// needed because a slow link makes workers skip pushes, for which other workers wait, so the time grows by
/// whole cycles. Deterministic. Takes about 0.1 s for 4 fragments of 50 steps.
double ForecastSecondsBetweenPushes(const OverlappedTraffic& traffic);

}  // namespace atl

#endif  // ATOLL_CLI_OVERLAP_FORECAST_H_
