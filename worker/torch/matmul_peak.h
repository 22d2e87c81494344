#ifndef ATOLL_WORKER_TORCH_MATMUL_PEAK_H_
#define ATOLL_WORKER_TORCH_MATMUL_PEAK_H_

#include "core/run_options.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// Floating-point operations per second of the fastest of a few square matrix products on `device`, with the
/// current number of threads, in bfloat16 if the run has it (else float32): what the model FLOPs utilization
/// is measured against. Takes some 50 ms, on an idle device. 0 if the products fail, for example without
/// memory.
double MeasureMatmulPeak(torch::Device device, Precision precision);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_MATMUL_PEAK_H_
