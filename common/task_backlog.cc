#include "common/task_backlog.h"

#include <utility>

namespace atl {

bool TaskBacklog::Post(std::function<void()> task, size_t limit) {
  MutexLock lock(&mutex_);
  if (closed_ || tasks_.size() >= limit) return false;
  tasks_.push_back(std::move(task));
  wake_.NotifyOne();
  return true;
}

void TaskBacklog::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !closed_) wake_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void TaskBacklog::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  wake_.NotifyAll();
}

size_t TaskBacklog::size() const {
  MutexLock lock(&mutex_);
  return tasks_.size();
}

}  // namespace atl
