#ifndef ATOLL_TESTS_CLIENT_SYNC_FAKE_TIME_H_
#define ATOLL_TESTS_CLIENT_SYNC_FAKE_TIME_H_

#include <functional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/sleeper.h"

namespace atl {

/// A clock that stands still unless told. Thread-safe.
class FakeClock final : public Clock {
 public:
  MonoTime Now() const override {
    const MutexLock lock(&mutex_);
    return now_;
  }
  WallTime WallNow() const override { return WallTime(Now().time_since_epoch()); }
  void Advance(Duration by) {
    const MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  MonoTime now_ ABSL_GUARDED_BY(mutex_){Seconds(1000)};
};

/// Sleeps by advancing the clock. Gives up after `limit` sleeps, so that a test that would wait for ever
/// ends.
class FakeSleeper final : public Sleeper {
 public:
  explicit FakeSleeper(FakeClock* clock, size_t limit = 100) : clock_(clock), limit_(limit) {}
  bool SleepFor(Duration duration) override {
    if (slept.size() >= limit_) return false;
    slept.push_back(duration);
    clock_->Advance(duration);
    if (on_sleep) on_sleep(slept.size());
    return true;
  }

  std::vector<Duration> slept;
  std::function<void(size_t)> on_sleep;  // with the number of sleeps so far

 private:
  FakeClock* const clock_;
  const size_t limit_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_FAKE_TIME_H_
