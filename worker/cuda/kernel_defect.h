#ifndef ATOLL_WORKER_CUDA_KERNEL_DEFECT_H_
#define ATOLL_WORKER_CUDA_KERNEL_DEFECT_H_

#include <cstdint>

namespace atl::device {

/// Defects of kernels that tests turn on, one at a time, to show that the host executor or the comparison
/// with the codecs finds them (docs/internals/kernels.md).
enum class KernelDefect : uint8_t {
  kNone,
  kMissingBarrier,
  kRace,
  kOutOfBounds,
  kWrongMask,
  kUnalignedTail,
  kUninitialisedShared,
  kDivergentBarrier,
  kLostAtomic,
  kWrongSumOrder,
  kShortLastBlock,
  kLeavesBeforeBarrier,
};

#ifdef __CUDACC__
/// Constant on a GPU: the compiler removes the defect.
constexpr bool Planted(KernelDefect) { return false; }
#else
/// For the host executor, which runs on one thread.
inline KernelDefect planted_kernel_defect = KernelDefect::kNone;
inline bool Planted(KernelDefect defect) { return planted_kernel_defect == defect; }
#endif

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNEL_DEFECT_H_
