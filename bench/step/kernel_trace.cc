#include "bench/step/kernel_trace.h"

#include "worker/torch/torch_features.h"

#if ATOLL_TORCH_2_6
#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>

namespace atl {

namespace profiler = torch::profiler::impl;

bool StartTrace() {
  const std::set<profiler::ActivityType> activities = {profiler::ActivityType::CPU,
                                                       profiler::ActivityType::CUDA};
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  return true;
}

void FinishTrace(const std::string& path) { torch::autograd::profiler::disableProfiler()->save(path); }

}  // namespace atl
#else
namespace atl {

bool StartTrace() { return false; }
void FinishTrace(const std::string& /*path*/) {}

}  // namespace atl
#endif
