#ifndef ATOLL_BENCH_EXCHANGE_CREW_H_
#define ATOLL_BENCH_EXCHANGE_CREW_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace atl {

/// One worker's part of one phase of a round.
using CrewPhase = std::function<absl::Status(uint32_t worker)>;

/// Runs a round's phases by so many workers, a thread each. All begin together; `lockstep`: and each phase
/// too. Seconds from the common begin to the end of the last.
absl::StatusOr<double> RunCrew(uint32_t workers, const std::vector<CrewPhase>& phases, bool lockstep);

double Median(std::vector<double> values);

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_CREW_H_
