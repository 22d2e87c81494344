#ifndef ATOLL_BENCH_STEP_KERNEL_TRACE_H_
#define ATOLL_BENCH_STEP_KERNEL_TRACE_H_

#include <string>

namespace atl {

/// Records what LibTorch runs on the processor and on CUDA devices, until FinishTrace writes it as a Chrome
/// trace. Returns false, and records nothing, where LibTorch has no such profiler (before 2.6).
bool StartTrace();
void FinishTrace(const std::string& path);

}  // namespace atl

#endif  // ATOLL_BENCH_STEP_KERNEL_TRACE_H_
