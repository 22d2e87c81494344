#include "common/task_queue.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace atoll {

void SetThreadName(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

namespace {

// On Linux a thread has a nice value of its own: a tenth of a normal thread's share, and all of what is idle.
constexpr int kBackgroundNice = 10;
constexpr int kNicest = 19;

void LowerOwnPriority() {
  // One that cannot be lowered works as well, only more loudly.
  const int nice = std::min(kNicest, ::getpriority(PRIO_PROCESS, 0) + kBackgroundNice);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
}

}  // namespace

TaskQueue::TaskQueue(std::string name, ThreadPriority priority)
    : name_(std::move(name)), priority_(priority), thread_([this] { Run(); }) {}

TaskQueue::~TaskQueue() { Stop(); }

bool TaskQueue::Post(std::function<void()> task) { return backlog_.Post(std::move(task)); }

void TaskQueue::Stop() {
  backlog_.Close();
  if (thread_.joinable()) thread_.join();
}

void TaskQueue::Drain() {
  Mutex mutex;
  CondVar reached;
  bool done = false;
  const bool posted = Post([&] {
    MutexLock lock(&mutex);
    done = true;
    reached.NotifyOne();
  });
  if (!posted) return;  // Stop runs what was posted
  MutexLock lock(&mutex);
  while (!done) reached.Wait(&mutex);
}

size_t TaskQueue::pending() const { return backlog_.size(); }

void TaskQueue::Run() {
  SetThreadName(name_);
  if (priority_ == ThreadPriority::kBackground) LowerOwnPriority();
  backlog_.Run();
}

}  // namespace atoll
