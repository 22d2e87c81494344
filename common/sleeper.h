#ifndef ATOLL_COMMON_SLEEPER_H_
#define ATOLL_COMMON_SLEEPER_H_

#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// Waits for a time. Injected, so that tests need not wait.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// Returns true after the whole time; false if the sleep was interrupted and the caller should give up.
  virtual bool SleepFor(Duration duration) = 0;
};

/// Sleeps on the real clock. After an interruption, every sleep returns false immediately. Thread-safe.
class InterruptibleSleeper final : public Sleeper {
 public:
  bool SleepFor(Duration duration) override;
  void Interrupt();
  bool interrupted() const;

 private:
  mutable Mutex mutex_;
  CondVar wake_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_SLEEPER_H_
