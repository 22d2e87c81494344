#ifndef ATOLL_TESTS_WORKER_TORCH_RANK_THREADS_H_
#define ATOLL_TESTS_WORKER_TORCH_RANK_THREADS_H_

#include <cstdint>
#include <functional>

#include "worker/torch/rank_group.h"

namespace atl::testing {

/// Runs `body` on each rank of a group over Gloo, as threads of this process, and waits for all.
void WithRanks(uint32_t size, const std::function<void(RankGroup&)>& body);

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_TORCH_RANK_THREADS_H_
