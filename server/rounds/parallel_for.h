#ifndef ATOLL_SERVER_ROUNDS_PARALLEL_FOR_H_
#define ATOLL_SERVER_ROUNDS_PARALLEL_FOR_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "common/task_queue.h"

namespace atl {

/// A few threads that share out the pieces of one job. The pieces are taken in no particular order, so a job
/// must not depend on it. One job at a time; not thread-safe.
class ParallelFor {
 public:
  /// threads >= 1; the calling thread is one of them.
  explicit ParallelFor(uint32_t threads);

  /// body(0) .. body(pieces - 1), each once; returns when all are done.
  void Run(size_t pieces, const std::function<void(size_t)>& body);

  uint32_t threads() const { return static_cast<uint32_t>(others_.size()) + 1; }

 private:
  std::vector<std::unique_ptr<TaskQueue>> others_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_PARALLEL_FOR_H_
