#ifndef ATOLL_WORKER_CUDA_KERNELS_SQUARE_SUM_H_
#define ATOLL_WORKER_CUDA_KERNELS_SQUARE_SUM_H_

#include <cstdint>

#include "worker/cuda/device.h"
#include "worker/cuda/kernel_defect.h"
#include "worker/cuda/kernels/push.h"

namespace atl::device {

/// What each chunk of values decodes to, for the sum of its squares.
using ChunkValues = SharedArray<float, kChunk>;

/// Lanes of DeterministicSumOfSquares (core/deterministic_sum.h): value i belongs to lane i mod 8.
inline constexpr uint32_t kSumLanes = 8;

/// ((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7)) of the sums of threads 0 to 7 of a warp; the others of the warp give
/// 0. Every addition has the same two operands as on the processor, and an addition gives the same in either
/// order.
ATOLL_DEVICE double AddLanes(double sum) {
  const bool wrong = Planted(KernelDefect::kWrongSumOrder);
  sum += ShuffleXor(sum, wrong ? 4 : 1);
  sum += ShuffleXor(sum, 2);
  sum += ShuffleXor(sum, wrong ? 1 : 4);
  return sum;
}

/// The sum for `values`, which all threads have written, by the first warp: one thread for each lane, which
/// adds its squares in order. float64 as on the processor, so the sum of finite values is finite.
ATOLL_DEVICE void StoreSquares(const ChunkValues& values, uint32_t count, const PushArguments& in) {
  const uint32_t thread = ThreadIndex();
  if (thread >= kWarp) return;
  double sum = 0;
  if (thread < kSumLanes) {
    for (uint32_t i = thread; i < count; i += kSumLanes) {
      const auto value = static_cast<double>(values.Load(i));
      sum += value * value;
    }
  }
  sum = AddLanes(sum);
  if (thread == 0) in.squares.Store(BlockIndex(), sum);
}

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_SQUARE_SUM_H_
