#include "worker/data/background_check.h"

#include <utility>

namespace atl {

BackgroundCheck::BackgroundCheck(std::shared_ptr<const TrainingData> data)
    : data_(std::move(data)), thread_([this] { Run(); }) {}

BackgroundCheck::~BackgroundCheck() {
  {
    const MutexLock lock(&mutex_);
    stopped_ = true;
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

void BackgroundCheck::Run() {
  SetThreadName("check-tokens");
  LowerThreadPriority();
  const absl::Status found = data_->VerifyContents([this] { return GoOn(); });
  const MutexLock lock(&mutex_);
  // The code of a file that was shortened: the data is not what it was, and the worker's exit code says so.
  if (!absl::IsCancelled(found) && !found.ok()) status_ = absl::NotFoundError(found.message());
  done_ = true;
  changed_.NotifyAll();
}

}  // namespace atl
