#ifndef ATOLL_WORKER_TORCH_DEVICE_COUNT_H_
#define ATOLL_WORKER_TORCH_DEVICE_COUNT_H_

#include <cstdint>

namespace atl {

/// CUDA devices that LibTorch sees; 0 without CUDA.
uint32_t CudaDevices();

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_DEVICE_COUNT_H_
