#include "simulate/simulated_network.h"

#include "common/thread.h"

namespace atl {

bool SimulatedLink::Cross() {
  const double share = 0.5 + random_.Uniform();
  SleepThisThread(Seconds(ToSeconds(latency) * share));
  const bool lost = random_.Uniform() < loss;
  return !partitioned && !lost;
}

bool SimulatedLink::Repeats() { return random_.Uniform() < repeat; }
bool SimulatedLink::Lies() { return random_.Uniform() < lies; }

}  // namespace atl
