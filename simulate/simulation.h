#ifndef ATOLL_SIMULATE_SIMULATION_H_
#define ATOLL_SIMULATE_SIMULATION_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"

namespace atl {

enum class SimulatedMode : uint8_t { kBlocking, kOverlapped, kAsync };

struct SimulationOptions {
  uint64_t seed = 0;
  SimulatedMode mode = SimulatedMode::kBlocking;
  uint32_t workers = 8;
  Duration duration = Seconds(3600);  // virtual, before everything is mended and must come to rest
};

struct SimulationResult {
  absl::Status status;  // the first property that did not hold
  uint64_t versions = 0;
  uint64_t counted = 0;       // contributions
  uint64_t acknowledged = 0;  // pushes that workers know of
  uint64_t switches = 0;      // between fibers
  uint64_t fingerprint = 0;   // equal for equal runs
  std::map<std::string, uint64_t> events;  // by kind, how many took place
};

/// A coordinator and its workers in virtual time, with faults that the seed decides: killed and restarted programs, power
/// cuts, lost and repeated messages, partitions, slow and frozen workers, commands, changed settings. After it the faults
/// end, and the run must go on. Replaces all memory files (memory_files.h). Everything is decided by the options: equal ones give equal results.
SimulationResult Simulate(const SimulationOptions& options);

}  // namespace atl

#endif  // ATOLL_SIMULATE_SIMULATION_H_
