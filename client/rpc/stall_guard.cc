#include "client/rpc/stall_guard.h"

namespace atl {

StallGuard::StallGuard(grpc::ClientContext* context, Duration limit)
    : context_(context), deadline_(SteadyNow() + limit), thread_([this] { Watch(); }) {}

StallGuard::~StallGuard() {
  {
    const MutexLock lock(&mutex_);
    done_ = true;
  }
  changed_.NotifyAll();
  thread_.Join();
}

void StallGuard::Progress(Duration limit) {
  // The watcher looks at the deadline again when it wakes; it need not be woken for a later one.
  const MonoTime deadline = SteadyNow() + limit;
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
    while (!done_ && SteadyNow() < deadline_) changed_.WaitUntil(&mutex_, deadline_);
    if (done_) return;
    stalled_ = true;
  }
  context_->TryCancel();
}

}  // namespace atl
