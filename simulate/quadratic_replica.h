#ifndef ATOLL_SIMULATE_QUADRATIC_REPLICA_H_
#define ATOLL_SIMULATE_QUADRATIC_REPLICA_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "client/sync/replica.h"

namespace atl {

/// A model whose loss is half the squared distance to a point that the samples decide: theta -= lr * (theta -
/// target(partition, sample)). So a contribution's bits depend on the base, on the place in the data and on nothing
/// else, and training costs next to nothing. A step takes virtual time.
class QuadraticReplica final : public Replica {
 public:
  static Manifest MakeManifest();
  static constexpr uint64_t kSamplesPerStep = 3;  // inner.batch
  static constexpr uint64_t kElements = 307;      // of all tensors
  static constexpr uint64_t kTokensPerStep = 24;  // inner.batch * context

  /// `step` is called before each step: it takes the step's time, and an error ends the step.
  explicit QuadraticReplica(std::function<absl::Status()> step) : step_(std::move(step)) {}

  const Manifest& manifest() const override { return manifest_; }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override;
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override;
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override;
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override;
  uint64_t samples_consumed() const override { return samples_; }
  absl::Status Seek(uint64_t samples_consumed) override;
  absl::Status SaveState(ReplicaState& state) override;
  absl::Status LoadState(const ReplicaState& state) override;
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) override;

 private:
  const Manifest manifest_ = MakeManifest();
  const std::function<absl::Status()> step_;
  std::vector<std::vector<float>> tensors_ = {std::vector<float>(300, 1.0F), std::vector<float>(7, 2.0F)};
  uint64_t steps_ = 0;
  uint32_t partition_ = 0;
  uint32_t partitions_ = 1;
  uint64_t samples_ = 0;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_QUADRATIC_REPLICA_H_
