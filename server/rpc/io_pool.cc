#include "server/rpc/io_pool.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/task_queue.h"

namespace atoll {

IoPool::IoPool(const IoPoolOptions& options) : options_(options) {
  threads_.reserve(options_.threads);
  for (size_t i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

IoPool::~IoPool() { Stop(); }

bool IoPool::Post(std::function<void()> task) { return Enqueue(std::move(task), options_.max_queued); }

bool IoPool::PostAdmitted(std::function<void()> task) {
  return Enqueue(std::move(task), std::numeric_limits<size_t>::max());
}

void IoPool::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t IoPool::queued() const {
  MutexLock lock(&mutex_);
  return tasks_.size();
}

bool IoPool::Enqueue(std::function<void()> task, size_t limit) {
  MutexLock lock(&mutex_);
  if (stopping_ || tasks_.size() >= limit) return false;
  tasks_.push_back(std::move(task));
  wake_.NotifyOne();
  return true;
}

void IoPool::Run(size_t index) {
  SetThreadName(absl::StrCat(options_.name, "-", index));
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopping_) wake_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace atoll
