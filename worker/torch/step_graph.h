#ifndef ATOLL_WORKER_TORCH_STEP_GRAPH_H_
#define ATOLL_WORKER_TORCH_STEP_GRAPH_H_

#include <functional>
#include <memory>

#include "common/log.h"

// No LibTorch type shows here.

namespace atl {

/// The work of one inner step, which a device repeats as one piece: a CUDA graph. Methods throw what LibTorch
/// throws.
class StepGraph {
 public:
  virtual ~StepGraph() = default;

  /// Remembers the work that `work` queues, and does not do it. It must be the same for every step: nothing
  /// in it may depend on a number of the host, or wait for the device. What it reads and writes stays where
  /// it is for the life of the graph.
  virtual void Record(std::function<void()> work) = 0;
  /// Queues the work.
  virtual void Replay() = 0;
};

using StepGraphFactory = std::function<std::unique_ptr<StepGraph>()>;

/// The work of one inner step: computed in the first Run, recorded in the second and replayed from then on.
/// Not thread-safe. Run throws what LibTorch throws, and if it cannot be recorded.
class RepeatedStep {
 public:
  /// `work`: as for StepGraph::Record.
  RepeatedStep(StepGraphFactory graphs, std::function<void()> work, const Logger& log);

  void Run();

 private:
  void Record();

  const StepGraphFactory graphs_;
  const std::function<void()> work_;
  bool computed_ = false;
  const Logger log_;
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_STEP_GRAPH_H_
