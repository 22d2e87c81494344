#ifndef ATOLL_COMMON_SLEEPER_H_
#define ATOLL_COMMON_SLEEPER_H_

#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// Waiting, injected so that tests do not.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// True when the whole time passed; false when the sleep was cut short and the caller should give up.
  virtual bool SleepFor(Duration duration) = 0;
};

/// Sleeps on the real clock until interrupted; from then on every sleep returns false at once. Thread-safe.
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
