#ifndef ATOLL_COMMON_TASK_BACKLOG_H_
#define ATOLL_COMMON_TASK_BACKLOG_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>

#include "common/mutex.h"

namespace atl {

/// A queue of tasks in the order of posting, and the loop of the threads that run them: one thread
/// (TaskQueue) or several (IoPool). The owner of the threads joins them after Close. Tasks must not throw.
/// Thread-safe.
class TaskBacklog {
 public:
  static constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

  /// Returns false and drops the task if `limit` tasks are waiting, or after Close.
  [[nodiscard]] bool Post(std::function<void()> task, size_t limit = kUnbounded);
  /// Runs tasks on the calling thread, without holding a lock, until Close was called and no task is left.
  void Run();
  /// Rejects new tasks and lets every Run end. Does not wait. Idempotent.
  void Close();
  /// Number of tasks that no thread has started.
  size_t size() const;

 private:
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_TASK_BACKLOG_H_
