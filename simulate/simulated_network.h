#ifndef ATOLL_SIMULATE_SIMULATED_NETWORK_H_
#define ATOLL_SIMULATE_SIMULATED_NETWORK_H_

#include <cstdint>

#include "common/clock.h"
#include "common/random.h"

namespace atl {

/// The way between one worker and the coordinator. Used by fibers of one scheduler only, so it needs no lock.
class SimulatedLink {
 public:
  explicit SimulatedLink(uint64_t seed) : random_(seed) {}

  /// Takes the time that a message needs. False: it never arrives.
  bool Cross();
  /// Whether a request arrives a second time after it was answered.
  bool Repeats();
  bool Lies();

  // Set by the owner of the faults.
  Duration latency = Seconds(0.02);  // one way, mean
  double loss = 0;                   // of messages
  double repeat = 0;                 // of requests
  double lies = 0;                   // of pushes: poisoned, or with claims that were not assigned
  bool partitioned = false;

 private:
  SplitMixGenerator random_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_SIMULATED_NETWORK_H_
