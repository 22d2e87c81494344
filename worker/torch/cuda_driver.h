#ifndef ATOLL_WORKER_TORCH_CUDA_DRIVER_H_
#define ATOLL_WORKER_TORCH_CUDA_DRIVER_H_

#include <optional>
#include <string>

// No LibTorch type shows here.

namespace atl {

/// What decides whether LibTorch can use a GPU of this machine. Versions are as CUDA has them: 12020 is 12.2.
struct CudaFacts {
  std::optional<int> built_for;  // CUDA of LibTorch; none: LibTorch has no CUDA
  bool has_driver = false;       // NVIDIA's library libcuda.so.1
  int supported = 0;             // the newest CUDA that the driver supports; 0: not known
  int init_error = 0;            // of cuInit (CUDA Driver API, CUresult); 0: none
};

/// Loads the driver's library, which stays loaded.
CudaFacts ReadCudaFacts(const char* library = "libcuda.so.1");

/// Why LibTorch sees no GPU, and what to do, for people.
std::string WhyNoCuda(const CudaFacts& facts);

/// Why a GPU that this machine seems to have is not used; empty if there is none, or if it can be used.
std::string WhyGpuIsIdle();

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_CUDA_DRIVER_H_
