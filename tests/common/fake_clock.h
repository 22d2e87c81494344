#ifndef ATOLL_TESTS_COMMON_FAKE_CLOCK_H_
#define ATOLL_TESTS_COMMON_FAKE_CLOCK_H_

#include <atomic>

#include "common/clock.h"

namespace atl {

/// A clock that moves when it is told to. Thread-safe.
class FakeClock : public Clock {
 public:
  MonoTime Now() const override { return MonoTime(Duration(now_.load())); }
  WallTime WallNow() const override { return WallTime(Duration(now_.load() + wall_ahead_.load())); }
  void Advance(Duration duration) { now_ += duration.count(); }
  /// Somebody sets the clock on the wall; the steady one does not move.
  void JumpWall(Duration by) { wall_ahead_ += by.count(); }

 private:
  std::atomic<int64_t> now_{1'000'000'000'000};
  std::atomic<int64_t> wall_ahead_{0};
};

}  // namespace atl

#endif  // ATOLL_TESTS_COMMON_FAKE_CLOCK_H_
