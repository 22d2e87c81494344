#include "common/sleeper.h"

namespace atoll {

bool InterruptibleSleeper::SleepFor(Duration duration) {
  const MonoTime deadline = std::chrono::steady_clock::now() + duration;
  MutexLock lock(&mutex_);
  while (!interrupted_) {
    if (std::chrono::steady_clock::now() >= deadline) return true;
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

}  // namespace atoll
