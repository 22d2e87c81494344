#ifndef ATOLL_WORKER_TORCH_RANK_SLICES_H_
#define ATOLL_WORKER_TORCH_RANK_SLICES_H_

#include <algorithm>
#include <cstdint>

#include "worker/torch/update_kernels.h"

namespace atl {

/// Elements [begin, end) of the flat vector.
struct RankSlice {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// The part of the optimizer's state that `rank` of `ranks` keeps (ZeRO-1: Rajbhandari et al., arXiv
/// 1910.02054). Equal parts of whole blocks of kSumBlock; the last ones may be shorter, or empty.
inline RankSlice SliceOf(int64_t elements, int rank, int ranks) {
  const auto block = static_cast<int64_t>(kSumBlock);
  const int64_t blocks = (elements + block - 1) / block;
  const int64_t each = (blocks + ranks - 1) / ranks * block;
  return {.begin = std::min(elements, rank * each), .end = std::min(elements, (rank + 1) * each)};
}

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_RANK_SLICES_H_
