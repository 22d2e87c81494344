#ifndef ATOLL_WORKER_ISLAND_ISLAND_REPLICA_H_
#define ATOLL_WORKER_ISLAND_ISLAND_REPLICA_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/sync/replica.h"
#include "worker/island/followers.h"
#include "worker/torch/rank_group.h"

namespace atl {

/// The replica of an island's member. Rank 0 has the connection to the coordinator and the synchronisation
/// loop; this decorates its replica, so that each call that changes or needs the ranks' replicas is executed
/// by all of them at the same time. So the rules of rounds exist once. What is read of the parameters is rank
/// 0's: all ranks have the same. One thread owns it.
class IslandReplica final : public Replica {
 public:
  using MakeReplica = std::function<absl::StatusOr<std::unique_ptr<Replica>>()>;

  /// Builds rank 0's replica with `make` while the other ranks build theirs. `config`: the run's, serialised.
  /// InvalidArgument when they have built another model. `followers` and `group` outlive it.
  static absl::StatusOr<std::unique_ptr<IslandReplica>> Build(const RankCall& build, const MakeReplica& make,
                                                              Followers* followers, RankGroup* group);

  IslandReplica(std::unique_ptr<Replica> own, Followers* followers, RankGroup* group);
  /// The other ranks drop theirs.
  ~IslandReplica() override;

  const Manifest& manifest() const override { return own_->manifest(); }
  uint64_t samples_consumed() const override { return own_->samples_consumed(); }
  std::unique_ptr<FragmentEncoder> MakeEncoder(const EncoderOptions& options) override {
    return own_->MakeEncoder(options);
  }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override {
    return own_->ReadFragment(fragment, out);
  }

  /// Of all devices together.
  ComputeCost compute_cost() const override {
    ComputeCost cost = own_->compute_cost();
    cost.peak_flops_per_second *= group_->size();
    return cost;
  }
  absl::StatusOr<std::vector<TaskScore>> ScoreTasks(const TaskCall& call) override {
    return own_->ScoreTasks(call);
  }

  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override;
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override;
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override;
  absl::Status Seek(uint64_t samples_consumed) override;
  absl::Status SaveState(ReplicaState& state) override;
  absl::Status LoadState(const ReplicaState& state) override;
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) override;

 private:
  /// `run` on this rank while the others execute `call`.
  absl::Status Together(const RankCall& call, const std::function<absl::Status()>& run);

  const std::unique_ptr<Replica> own_;
  Followers* const followers_;
  RankGroup* const group_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_ISLAND_REPLICA_H_
