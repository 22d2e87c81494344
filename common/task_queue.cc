#include "common/task_queue.h"

#include <utility>

namespace atl {

TaskQueue::TaskQueue(std::string name, ThreadPriority priority)
    : name_(std::move(name)), priority_(priority), thread_([this] { Run(); }) {}

TaskQueue::~TaskQueue() { Stop(); }

bool TaskQueue::Post(std::function<void()> task) { return backlog_.Post(std::move(task)); }

void TaskQueue::Stop() {
  backlog_.Close();
  if (thread_.joinable()) thread_.Join();
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
  if (priority_ == ThreadPriority::kBackground) LowerThreadPriority();
  backlog_.Run();
}

}  // namespace atl
