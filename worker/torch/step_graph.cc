#include "worker/torch/step_graph.h"

#include <exception>
#include <string>
#include <utility>

namespace atl {

RepeatedStep::RepeatedStep(StepGraphFactory graphs, std::function<void()> work, const Logger& log)
    : graphs_(std::move(graphs)), work_(std::move(work)), log_(log) {}

void RepeatedStep::Record() {
  try {
    auto graph = graphs_();
    graph->Record(work_);
    graph_ = std::move(graph);
    log_.Info("inner steps are replayed as one piece");
  } catch (const std::exception& error) {
    log_.Warning("inner steps cannot be recorded as one piece; their kernels are queued one by one",
                 {{"error", std::string(error.what())}});
  }
  graphs_ = {};
}

void RepeatedStep::Run() {
  // Libraries make handles and choose kernels in the first, which a recording forbids.
  if (graphs_ && std::exchange(ran_, true)) Record();
  if (graph_ != nullptr) {
    graph_->Replay();
  } else {
    work_();
  }
}

}  // namespace atl
