#ifndef ATOLL_WORKER_TORCH_TORCH_FEATURES_H_
#define ATOLL_WORKER_TORCH_TORCH_FEATURES_H_

#include <torch/version.h>

// What the LibTorch that is compiled against offers. No other file asks for its version.

// 2.0: at::scaled_dot_product_attention, and c10d's backends as classes of their own.
#define ATOLL_TORCH_2 (TORCH_VERSION_MAJOR >= 2)

// 2.6: at::_fused_adamw_ takes the divisor of the gradients, and whether to do nothing, from the device, on
// every device; and the profiler that the benchmarks use.
#define ATOLL_TORCH_2_6 (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6))

#endif  // ATOLL_WORKER_TORCH_TORCH_FEATURES_H_
