#include "worker/client/stall_guard.h"

namespace atoll {

StallGuard::StallGuard(grpc::ClientContext* context, Duration limit)
    : context_(context), deadline_(std::chrono::steady_clock::now() + limit), thread_([this] { Watch(); }) {}

StallGuard::~StallGuard() {
  {
    const MutexLock lock(&mutex_);
    done_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void StallGuard::Progress(Duration limit) {
  // The watcher looks at the deadline again when it wakes; it need not be woken for a later one.
  const MonoTime deadline = std::chrono::steady_clock::now() + limit;
  const MutexLock lock(&mutex_);
  if (deadline < deadline_) changed_.NotifyAll();
  deadline_ = deadline;
}

bool StallGuard::stalled() const {
  const MutexLock lock(&mutex_);
  return stalled_;
}

void StallGuard::Watch() {
  {
    const MutexLock lock(&mutex_);
    while (!done_ && std::chrono::steady_clock::now() < deadline_) changed_.WaitUntil(&mutex_, deadline_);
    if (done_) return;
    stalled_ = true;
  }
  context_->TryCancel();
}

}  // namespace atoll
