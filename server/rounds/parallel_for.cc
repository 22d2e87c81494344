#include "server/rounds/parallel_for.h"

#include <atomic>

#include "absl/strings/str_format.h"

namespace atl {

ParallelFor::ParallelFor(uint32_t threads) {
  for (uint32_t i = 1; i < threads; ++i) {
    others_.push_back(std::make_unique<TaskQueue>(absl::StrFormat("merge-%d", i)));
  }
}

void ParallelFor::Run(size_t pieces, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < pieces; i = next.fetch_add(1)) body(i);
  };
  std::vector<TaskQueue*> helping;
  for (const auto& queue : others_) {
    if (helping.size() + 1 >= pieces) break;
    if (queue->Post(work)) helping.push_back(queue.get());
  }
  work();
  for (TaskQueue* queue : helping) queue->Drain();
}

}  // namespace atl
