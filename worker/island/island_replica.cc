#include "worker/island/island_replica.h"

#include <utility>
#include <vector>

#include "common/status.h"
#include "worker/island/agreement.h"

namespace atl {

absl::StatusOr<std::unique_ptr<IslandReplica>> IslandReplica::Build(const RankCall& build,
                                                                    const MakeReplica& make,
                                                                    Followers* followers, RankGroup* group) {
  ATOLL_RETURN_IF_ERROR(followers->Tell(build));
  auto own = make();
  ATOLL_ASSIGN_OR_RETURN(const std::vector<RankReply> replies, followers->Replies());
  ATOLL_RETURN_IF_ERROR(own.status());
  auto island = std::make_unique<IslandReplica>(*std::move(own), followers, group);
  const std::string manifest = ManifestHash(island->manifest());
  for (size_t i = 0; i < replies.size(); ++i) {
    const auto rank = static_cast<uint32_t>(i + 1);
    if (!replies[i].status.ok()) {
      return absl::Status(replies[i].status.code(),
                          "rank " + std::to_string(rank) + ": " + std::string(replies[i].status.message()));
    }
    ATOLL_RETURN_IF_ERROR(CheckSameModel(manifest, rank, replies[i].manifest_hash));
  }
  return island;
}

IslandReplica::IslandReplica(std::unique_ptr<Replica> own, Followers* followers, RankGroup* group)
    : own_(std::move(own)), followers_(followers), group_(group) {}

IslandReplica::~IslandReplica() {
  (void)Together({.kind = RankCallKind::kDrop}, [] { return absl::OkStatus(); });
}

absl::Status IslandReplica::Together(const RankCall& call, const std::function<absl::Status()>& run) {
  ATOLL_RETURN_IF_ERROR(followers_->Tell(call));
  return followers_->Finish(run());
}

absl::Status IslandReplica::WriteFragment(const FragmentLayout& fragment, std::span<const float> values) {
  // Refused before the others wait for values.
  if (values.size() != fragment.elements) return own_->WriteFragment(fragment, values);
  return Together({.kind = RankCallKind::kWriteFragment, .fragment = fragment}, [&]() -> absl::Status {
    // A broadcast from this rank only reads.
    ATOLL_RETURN_IF_ERROR(
        group_->BroadcastFromFirst(std::span(const_cast<float*>(values.data()), values.size())));
    return own_->WriteFragment(fragment, values);
  });
}

absl::StatusOr<InnerStepResult> IslandReplica::InnerStep(double learning_rate) {
  InnerStepResult result;
  ATOLL_RETURN_IF_ERROR(Together({.kind = RankCallKind::kInnerStep, .learning_rate = learning_rate}, [&] {
    auto step = own_->InnerStep(learning_rate);
    if (step.ok()) result = *step;
    return step.status();
  }));
  return result;
}

absl::Status IslandReplica::SetPartition(uint32_t partition, uint32_t partitions) {
  return Together({.kind = RankCallKind::kSetPartition, .partition = partition, .partitions = partitions},
                  [&] { return own_->SetPartition(partition, partitions); });
}

absl::Status IslandReplica::Seek(uint64_t samples_consumed) {
  return Together({.kind = RankCallKind::kSeek, .position = samples_consumed},
                  [&] { return own_->Seek(samples_consumed); });
}

absl::Status IslandReplica::SaveState(ReplicaState& state) {
  return Together({.kind = RankCallKind::kSaveState}, [&] { return own_->SaveState(state); });
}

absl::Status IslandReplica::LoadState(const ReplicaState& state) {
  RankCall call{.kind = RankCallKind::kLoadState};
  call.state = {.kind = state.kind,
                .optimizer_steps = state.optimizer_steps,
                .partition = state.partition,
                .partitions = state.partitions,
                .samples_consumed = state.samples_consumed,
                .random = state.random,
                .moments = {}};
  return Together(call, [&] { return own_->LoadState(state); });
}

absl::StatusOr<EvaluationResult> IslandReplica::Evaluate(uint32_t max_batches) {
  EvaluationResult result;
  ATOLL_RETURN_IF_ERROR(Together({.kind = RankCallKind::kEvaluate, .batches = max_batches}, [&] {
    auto evaluated = own_->Evaluate(max_batches);
    if (evaluated.ok()) result = *evaluated;
    return evaluated.status();
  }));
  return result;
}

}  // namespace atl
