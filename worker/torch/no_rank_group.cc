// In the place of c10d_group.cc where LibTorch has neither Gloo nor NCCL, or their headers are missing.
#include "worker/torch/rank_backend.h"

namespace atl {

absl::Status CheckRankSupport() {
  return absl::UnimplementedError(
      "this program was built without Gloo and NCCL, so that it cannot connect ranks; run without --ranks, "
      "or install "
      "libgloo-dev and build it again");
}

absl::StatusOr<std::shared_ptr<RankStore>> OpenRankStore(const RankStoreOptions& /*options*/) {
  return CheckRankSupport();
}

absl::StatusOr<std::unique_ptr<RankGroup>> ConnectRanks(const std::shared_ptr<RankStore>& /*store*/,
                                                        const RankGroupOptions& /*options*/) {
  return CheckRankSupport();
}

}  // namespace atl
