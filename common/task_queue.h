#ifndef ATOLL_COMMON_TASK_QUEUE_H_
#define ATOLL_COMMON_TASK_QUEUE_H_

#include <functional>
#include <string>

#include "common/task_backlog.h"
#include "common/thread.h"

namespace atl {

/// Scheduling priority if there are more threads than cores.
enum class ThreadPriority { kNormal, kBackground };

/// One named thread that runs tasks in the order of posting. Stop or the destructor joins it. Tasks must not
/// throw. Thread-safe.
class TaskQueue {
 public:
  /// `name` is shown by top and gdb; the kernel keeps 15 bytes of it.
  explicit TaskQueue(std::string name, ThreadPriority priority = ThreadPriority::kNormal);
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// After Stop, returns false and drops the task.
  [[nodiscard]] bool Post(std::function<void()> task);
  /// Rejects new tasks, runs those already posted, and joins the thread. Idempotent. Do not call it from a
  /// task.
  void Stop();
  /// Waits until every task posted before the call has run. Do not call it from a task.
  void Drain();
  size_t pending() const;

 private:
  void Run();

  const std::string name_;
  const ThreadPriority priority_;
  TaskBacklog backlog_;
  Thread thread_;  // declared last, because it uses everything above
};

}  // namespace atl

#endif  // ATOLL_COMMON_TASK_QUEUE_H_
