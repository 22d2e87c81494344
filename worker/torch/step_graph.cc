#include "worker/torch/step_graph.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace atl {

RepeatedStep::RepeatedStep(StepGraphFactory graphs, std::function<void()> work, const Logger& log)
    : graphs_(std::move(graphs)), work_(std::move(work)), log_(log) {}

void RepeatedStep::Record() {
  try {
    graph_ = graphs_();
    graph_->Record(work_);
  } catch (const std::exception& error) {
    graph_.reset();
    // A recording that was broken off leaves LibTorch's allocator in a state to which it gives no way back.
    throw std::runtime_error("this step cannot be recorded; start the worker again without --cuda-graph: " +
                             std::string(error.what()));
  }
  log_.Info("inner steps are replayed as one piece");
}

void RepeatedStep::Run() {
  // Libraries allocate at their first use, in each thread, which would end a recording.
  if (!std::exchange(computed_, true)) return work_();
  if (graph_ == nullptr) Record();
  graph_->Replay();
}

}  // namespace atl
