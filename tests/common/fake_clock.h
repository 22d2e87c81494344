#ifndef ATOLL_TESTS_COMMON_FAKE_CLOCK_H_
#define ATOLL_TESTS_COMMON_FAKE_CLOCK_H_

#include <atomic>

#include "common/clock.h"

namespace atoll {

/// A clock that moves when it is told to. Thread-safe.
class FakeClock final : public Clock {
 public:
  MonoTime Now() const override { return MonoTime(Duration(now_.load())); }
  WallTime WallNow() const override { return WallTime(Duration(now_.load())); }
  void Advance(Duration duration) { now_ += duration.count(); }

 private:
  std::atomic<int64_t> now_{1'000'000'000'000};
};

}  // namespace atoll

#endif  // ATOLL_TESTS_COMMON_FAKE_CLOCK_H_
