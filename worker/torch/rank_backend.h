#ifndef ATOLL_WORKER_TORCH_RANK_BACKEND_H_
#define ATOLL_WORKER_TORCH_RANK_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/torch/rank_group.h"

namespace atl {

/// RankStore::Open and RankGroup::Create with what this program was built with: c10d_group.cc or, without
/// Gloo and NCCL, no_rank_group.cc. CheckRankSupport is there too.
absl::StatusOr<std::shared_ptr<RankStore>> OpenRankStore(const RankStoreOptions& options);
absl::StatusOr<std::unique_ptr<RankGroup>> ConnectRanks(const std::shared_ptr<RankStore>& store,
                                                        const RankGroupOptions& options);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_RANK_BACKEND_H_
