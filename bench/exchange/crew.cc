#include "bench/exchange/crew.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>

namespace atl {

absl::StatusOr<double> RunCrew(uint32_t workers, const std::vector<CrewPhase>& phases, bool lockstep) {
  std::vector<absl::Status> outcomes(workers);
  std::vector<std::thread> threads;
  std::chrono::steady_clock::time_point begin;
  std::barrier ready(workers, [&]() noexcept { begin = std::chrono::steady_clock::now(); });
  std::barrier together(workers);
  for (uint32_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      ready.arrive_and_wait();
      for (const CrewPhase& phase : phases) {
        // A worker that failed still comes to the barrier, for the others' sake.
        if (outcomes[worker].ok()) outcomes[worker] = phase(worker);
        if (lockstep) together.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto end = std::chrono::steady_clock::now();
  for (const absl::Status& outcome : outcomes) {
    if (!outcome.ok()) return outcome;
  }
  return std::chrono::duration<double>(end - begin).count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace atl
