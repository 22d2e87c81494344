#ifndef ATOLL_COMMON_CLOCK_H_
#define ATOLL_COMMON_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace atl {

using Duration = std::chrono::nanoseconds;
/// A point on the steady clock. Every deadline and lease is one of these, so that a jump of the wall clock
/// moves none.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
/// Wall-clock time, for logs, records and people only; never compared with a deadline.
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
/// The wall clock beside it.
WallTime SystemNow();

/// The clocks that blocked threads wait by: the machine's, or in a simulation virtual ones.
class SystemClock final : public Clock {
 public:
  MonoTime Now() const override { return SteadyNow(); }
  WallTime WallNow() const override { return SystemNow(); }
};

}  // namespace atl

#endif  // ATOLL_COMMON_CLOCK_H_
