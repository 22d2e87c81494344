#include "simulate/quadratic_replica.h"

#include <algorithm>

#include "common/random.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr const char* kKind = "quadratic";

}  // namespace

Manifest QuadraticReplica::MakeManifest() {
  return {{{.name = "weight", .shape = {20, 15}, .embedding = false},
           {.name = "bias", .shape = {7}, .embedding = false}}};
}

absl::Status QuadraticReplica::ReadFragment(const FragmentLayout& fragment, std::span<float> out) {
  std::ranges::fill(out, 0.0F);
  for (const TensorSlot& slot : fragment.slots) {
    std::ranges::copy(tensors_[slot.tensor], out.begin() + static_cast<ptrdiff_t>(slot.offset));
  }
  return absl::OkStatus();
}

absl::Status QuadraticReplica::WriteFragment(const FragmentLayout& fragment, std::span<const float> values) {
  for (const TensorSlot& slot : fragment.slots) {
    std::copy_n(values.begin() + static_cast<ptrdiff_t>(slot.offset), slot.elements,
                tensors_[slot.tensor].begin());
  }
  return absl::OkStatus();
}

absl::StatusOr<InnerStepResult> QuadraticReplica::InnerStep(double learning_rate) {
  ATOLL_RETURN_IF_ERROR(step_());
  ++steps_;
  double loss = 0;
  uint64_t i = 0;
  for (std::vector<float>& tensor : tensors_) {
    for (float& value : tensor) {
      const uint64_t noise = SplitMix64((uint64_t{partition_} << 48) + (samples_ << 16) + i++);
      // In [-1, 1), exactly.
      const float target = static_cast<float>(noise >> 40) / 8388608.0F - 1.0F;
      const float distance = value - target;
      loss += 0.5 * static_cast<double>(distance) * static_cast<double>(distance);
      value -= static_cast<float>(learning_rate) * distance;
    }
  }
  samples_ += kSamplesPerStep;
  return InnerStepResult{.loss = loss / static_cast<double>(i), .gradient_norm = 1, .tokens = kTokensPerStep};
}

absl::Status QuadraticReplica::SetPartition(uint32_t partition, uint32_t partitions) {
  partition_ = partition;
  partitions_ = partitions;
  samples_ = 0;
  return absl::OkStatus();
}

absl::Status QuadraticReplica::Seek(uint64_t samples_consumed) {
  samples_ = samples_consumed;
  return absl::OkStatus();
}

absl::Status QuadraticReplica::SaveState(ReplicaState& state) {
  state.kind = kKind;
  state.optimizer_steps = steps_;
  state.partition = partition_;
  state.partitions = partitions_;
  state.samples_consumed = samples_;
  state.moments = {{static_cast<float>(steps_)}};
  return absl::OkStatus();
}

absl::Status QuadraticReplica::LoadState(const ReplicaState& state) {
  if (state.kind != kKind) return absl::InvalidArgumentError("the state is of another kind of model");
  steps_ = state.optimizer_steps;
  partition_ = state.partition;
  partitions_ = state.partitions;
  samples_ = state.samples_consumed;
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> QuadraticReplica::Evaluate(uint32_t max_batches) {
  double sum = 0;
  for (const float value : tensors_[0]) sum += static_cast<double>(value) * static_cast<double>(value);
  return EvaluationResult{.loss = sum / static_cast<double>(tensors_[0].size()), .tokens = max_batches};
}

}  // namespace atl
