#include "common/sleeper.h"

namespace atl {

bool InterruptibleSleeper::SleepFor(Duration duration) {
  const MonoTime deadline = SteadyNow() + duration;
  MutexLock lock(&mutex_);
  while (!interrupted_) {
    if (SteadyNow() >= deadline) return true;
    wake_.WaitUntil(&mutex_, deadline);
  }
  return false;
}

void InterruptibleSleeper::Interrupt() {
  MutexLock lock(&mutex_);
  interrupted_ = true;
  wake_.NotifyAll();
}

bool InterruptibleSleeper::interrupted() const {
  MutexLock lock(&mutex_);
  return interrupted_;
}

}  // namespace atl
