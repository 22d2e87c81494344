#include "worker/data/background_check.h"

#include <utility>

namespace atl {

BackgroundCheck::BackgroundCheck(std::shared_ptr<const TrainingData> data, Duration look_every)
    : data_(std::move(data)), look_every_(look_every), thread_([this] { Run(); }) {}

BackgroundCheck::~BackgroundCheck() {
  {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.Join();
}

absl::Status BackgroundCheck::status() const {
  const MutexLock lock(&mutex_);
  return status_;
}

absl::Status BackgroundCheck::Wait() {
  const MutexLock lock(&mutex_);
  while (!done_) changed_.Wait(&mutex_);
  return status_;
}

bool BackgroundCheck::GoOn() const {
  const MutexLock lock(&mutex_);
  return !stopped_;
}

bool BackgroundCheck::WaitForChange(int64_t modified_ns) {
  while (true) {
    {
      const MutexLock lock(&mutex_);
      const MonoTime deadline = SteadyNow() + look_every_;
      while (!stopped_ && changed_.WaitUntil(&mutex_, deadline)) {
      }
      if (stopped_) return false;
    }
    if (data_->ModifiedNanos() != modified_ns) return true;
  }
}

void BackgroundCheck::Run() {
  SetThreadName("check-tokens");
  LowerThreadPriority();
  int64_t modified_ns = 0;
  do {
    // Before the comparison: what is written meanwhile is compared once more.
    modified_ns = data_->ModifiedNanos();
    const absl::Status found = data_->VerifyContents([this] { return GoOn(); });
    const MutexLock lock(&mutex_);
    // The code of a file that was shortened: the data is not what it was, and the worker's exit code says so.
    if (!absl::IsCancelled(found) && !found.ok()) status_ = absl::NotFoundError(found.message());
    done_ = true;
    changed_.NotifyAll();
    if (!found.ok()) return;
  } while (WaitForChange(modified_ns));
}

}  // namespace atl
