#ifndef ATOLL_COMMON_TASK_BACKLOG_H_
#define ATOLL_COMMON_TASK_BACKLOG_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>

#include "common/mutex.h"

namespace atl {

/// Tasks in the order in which they were posted, and the loop of the threads that run them: one (TaskQueue)
/// or several (IoPool). The threads are their owner's, who joins them after Close. Tasks must not throw.
/// Thread-safe.
class TaskBacklog {
 public:
  static constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

  /// False, and the task is dropped unrun, when `limit` of them wait already, or after Close.
  [[nodiscard]] bool Post(std::function<void()> task, size_t limit = kUnbounded);
  /// Runs tasks on the calling thread, none of them under a lock, until there are none left after Close.
  void Run();
  /// Refuses new tasks, and lets every Run come to its end. Does not wait for it. Idempotent.
  void Close();
  /// Those that no thread has taken yet.
  size_t size() const;

 private:
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_TASK_BACKLOG_H_
