#ifndef ATOLL_COMMON_TASK_QUEUE_H_
#define ATOLL_COMMON_TASK_QUEUE_H_

#include <functional>
#include <string>

#include "common/task_backlog.h"
#include "common/thread.h"

namespace atl {

/// Whose turn it is when there are more threads than cores.
enum class ThreadPriority { kNormal, kBackground };

/// One named thread that runs tasks in the order in which they were posted. The owner joins it, by Stop or by
/// the destructor. Tasks must not throw. Thread-safe.
class TaskQueue {
 public:
  /// `name` is shown by top and gdb; the kernel keeps 15 bytes of it.
  explicit TaskQueue(std::string name, ThreadPriority priority = ThreadPriority::kNormal);
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// False, and the task is dropped unrun, after Stop.
  [[nodiscard]] bool Post(std::function<void()> task);
  /// Refuses new tasks, runs those already posted, joins the thread. Idempotent; not from a task.
  void Stop();
  /// Returns once every task posted before the call has run. Not from a task.
  void Drain();
  size_t pending() const;

 private:
  void Run();

  const std::string name_;
  const ThreadPriority priority_;
  TaskBacklog backlog_;
  Thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_COMMON_TASK_QUEUE_H_
