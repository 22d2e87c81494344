#ifndef ATOLL_SERVER_RPC_IO_POOL_H_
#define ATOLL_SERVER_RPC_IO_POOL_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/task_backlog.h"
#include "common/thread.h"

namespace atl {

struct IoPoolOptions {
  std::string name;  // of the threads
  size_t threads = 4;
  size_t max_queued = 4096;
};

/// Threads for work that may block (the disk), so that gRPC's own never do. The queue is bounded: what does
/// not fit is refused, and the caller says so to its client. Thread-safe.
class IoPool {
 public:
  explicit IoPool(const IoPoolOptions& options);
  ~IoPool();
  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;

  /// False when the queue is full or after Stop; the task is then dropped unrun.
  [[nodiscard]] bool Post(std::function<void()> task);
  /// As Post, for the next step of work that was already admitted: not refused by a full queue. One step at a
  /// time of each stream, so the number of streams bounds the queue. False only after Stop.
  [[nodiscard]] bool PostAdmitted(std::function<void()> task);
  /// Refuses new tasks, runs those that were posted, joins. Idempotent; not from a task.
  void Stop();
  size_t queued() const;

 private:
  void Run(size_t index);

  const IoPoolOptions options_;
  TaskBacklog backlog_;
  std::vector<Thread> threads_;  // last: they use everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_IO_POOL_H_
