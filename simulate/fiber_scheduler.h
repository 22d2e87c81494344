#ifndef ATOLL_SIMULATE_FIBER_SCHEDULER_H_
#define ATOLL_SIMULATE_FIBER_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"

namespace atl {

/// Runs threads (common/thread.h) as fibers of the calling thread: one at a time, in an order that a seed
/// decides, in virtual time. Equal seeds give equal runs, bit for bit, when the code that runs takes threads,
/// locks, time and randomness from nowhere else. Programs that use it link simulate/fiber_threads.cc.
///
/// A fiber gives way when it waits (for a lock, a condition, a thread, or time), and before about one lock in
/// `Options::locks_per_switch`, so that other orders are tried too. When no fiber can run, virtual time goes on to
/// the next deadline. Computing takes no virtual time.
///
/// Not thread-safe. One scheduler runs at a time on a thread of the machine.
class FiberScheduler {
 public:
  struct Options {
    uint64_t seed = 0;
    uint32_t locks_per_switch = 8;      // mean; 0: a fiber gives way only when it has to wait
    size_t stack_bytes = 256 << 10;     // of each fiber
    Duration start = Seconds(1000000);  // virtual time at the beginning, since the epoch of the steady clock
  };

  explicit FiberScheduler(const Options& options);
  ~FiberScheduler();
  FiberScheduler(const FiberScheduler&) = delete;
  FiberScheduler& operator=(const FiberScheduler&) = delete;

  /// Runs `main` as the first fiber and returns when it and every thread that was started has ended.
  /// FailedPrecondition when none can ever run again: the message names each, and what it waits for. Such fibers
  /// are never resumed, and what stands on their stacks is leaked.
  absl::Status Run(std::function<void()> main);

  MonoTime now() const;
  /// How often a fiber was resumed.
  uint64_t switches() const;

  /// What fibers wait for and what wakes them is for the implementation of common/thread.h and common/mutex.h only.
  class Core;
  Core& core() { return *core_; }

 private:
  const std::unique_ptr<Core> core_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_FIBER_SCHEDULER_H_
