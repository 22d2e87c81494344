#include "worker/torch/rank_group.h"

#include <utility>

#include "worker/torch/rank_backend.h"
#include "worker/torch/rank_collectives.h"
#include "worker/torch/torch_status.h"

namespace atl {

RankGroup::RankGroup(uint32_t rank, uint32_t size, std::unique_ptr<RankCollectives> collectives)
    : rank_(rank), size_(size), collectives_(std::move(collectives)) {}

RankGroup::~RankGroup() = default;

absl::StatusOr<std::shared_ptr<RankStore>> RankStore::Open(const RankStoreOptions& options) {
  return OpenRankStore(options);
}

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Create(const std::shared_ptr<RankStore>& store,
                                                             const RankGroupOptions& options) {
  return ConnectRanks(store, options);
}

absl::Status RankGroup::BroadcastFromFirst(std::span<float> values) {
  return CatchTorch("sharing values with the other ranks", [&] {
    const torch::Tensor tensor =
        torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat32);
    collectives_->StartBroadcast(tensor, 0)->Wait();
    return absl::OkStatus();
  });
}

}  // namespace atl
