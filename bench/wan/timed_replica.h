#ifndef ATOLL_BENCH_WAN_TIMED_REPLICA_H_
#define ATOLL_BENCH_WAN_TIMED_REPLICA_H_

#include <cstdint>
#include <vector>

#include "client/sync/replica.h"
#include "common/clock.h"
#include "common/random.h"
#include "core/run_options.h"

namespace atl {

/// A replica of the run's model whose inner step is a timer: it takes `step` of wall time and next to none of
/// a processor's, as a worker does whose arithmetic is on an accelerator. So that codecs have something to
/// encode, every step moves one part in kParts of the parameters, drawn from `seed`. Not thread-safe.
class TimedReplica final : public Replica {
 public:
  /// As many parts as a usual round has steps: a round moves all parameters, a step costs a millisecond.
  static constexpr uint64_t kParts = 50;

  TimedReplica(const RunOptions& run, Duration step, uint64_t seed);

  const Manifest& manifest() const override { return manifest_; }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override;
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override;
  /// The loss it reports is always 1.
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override;
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override;
  uint64_t samples_consumed() const override { return samples_; }
  absl::Status Seek(uint64_t samples_consumed) override;
  absl::Status SaveState(ReplicaState& state) override;
  absl::Status LoadState(const ReplicaState& state) override;
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) override;

 private:
  void MoveAPart(float scale);

  const Manifest manifest_;
  const Duration step_;
  const uint64_t batch_;
  const uint64_t tokens_per_step_;
  SplitMixGenerator random_;
  std::vector<std::vector<float>> tensors_;
  uint64_t steps_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace atl

#endif  // ATOLL_BENCH_WAN_TIMED_REPLICA_H_
