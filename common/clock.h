#ifndef ATOLL_COMMON_CLOCK_H_
#define ATOLL_COMMON_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace atl {

using Duration = std::chrono::nanoseconds;
/// A point on the steady clock. Deadlines and leases use it, so that jumps of the wall clock do not move
/// them.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
/// Wall-clock time, only for logs, records and display. Never compare it with a deadline.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

constexpr Duration Seconds(double s) { return Duration(static_cast<int64_t>(s * 1e9)); }
constexpr double ToSeconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

/// Source of time, injected everywhere. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime Now() const = 0;
  virtual WallTime WallNow() const = 0;
};

/// The time that CondVar::WaitUntil compares its deadline with. The implementation is that of
/// common/thread.h.
MonoTime SteadyNow();
/// The matching wall clock.
WallTime SystemNow();

/// The clocks that blocked threads use: the machine's clocks, or virtual ones in a simulation.
class SystemClock final : public Clock {
 public:
  MonoTime Now() const override { return SteadyNow(); }
  WallTime WallNow() const override { return SystemNow(); }
};

}  // namespace atl

#endif  // ATOLL_COMMON_CLOCK_H_
