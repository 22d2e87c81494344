#include "bench/wan/timed_replica.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/model_shape.h"

namespace atl {

TimedReplica::TimedReplica(const RunOptions& run, Duration step, uint64_t seed)
    : manifest_(ManifestOf(run.model).value()),
      step_(step),
      batch_(uint64_t{run.inner.batch} * run.inner.accumulation),
      tokens_per_step_(run.tokens_per_step()),
      random_(seed) {
  for (const TensorSpec& tensor : manifest_.tensors) {
    std::vector<float>& values = tensors_.emplace_back(tensor.elements());
    for (float& value : values) value = static_cast<float>(0.04 * (random_.Uniform() - 0.5));
  }
}

absl::Status TimedReplica::ReadFragment(const FragmentLayout& fragment, std::span<float> out) {
  std::ranges::fill(out, 0.0F);
  for (const TensorSlot& slot : fragment.slots) {
    std::ranges::copy(tensors_[slot.tensor], out.begin() + static_cast<ptrdiff_t>(slot.offset));
  }
  return absl::OkStatus();
}

absl::Status TimedReplica::WriteFragment(const FragmentLayout& fragment, std::span<const float> values) {
  for (const TensorSlot& slot : fragment.slots) {
    std::ranges::copy(values.subspan(slot.offset, slot.elements), tensors_[slot.tensor].begin());
  }
  return absl::OkStatus();
}

absl::StatusOr<InnerStepResult> TimedReplica::InnerStep(double learning_rate) {
  const MonoTime end = std::chrono::steady_clock::now() + step_;
  MoveAPart(static_cast<float>(learning_rate));
  ++steps_;
  samples_ += batch_;
  std::this_thread::sleep_until(end);
  return InnerStepResult{.loss = 1, .gradient_norm = 1, .tokens = tokens_per_step_};
}

void TimedReplica::MoveAPart(float scale) {
  const uint64_t part = steps_ % kParts;
  for (std::vector<float>& tensor : tensors_) {
    const uint64_t from = tensor.size() * part / kParts;
    const uint64_t to = tensor.size() * (part + 1) / kParts;
    for (uint64_t i = from; i < to; ++i) tensor[i] += scale * static_cast<float>(random_.Uniform() - 0.5);
  }
}

absl::Status TimedReplica::SetPartition(uint32_t, uint32_t) {
  samples_ = 0;
  return absl::OkStatus();
}

absl::Status TimedReplica::Seek(uint64_t samples_consumed) {
  samples_ = samples_consumed;
  return absl::OkStatus();
}

absl::Status TimedReplica::SaveState(ReplicaState& state) {
  state.kind = "timed";
  state.optimizer_steps = steps_;
  state.samples_consumed = samples_;
  return absl::OkStatus();
}

absl::Status TimedReplica::LoadState(const ReplicaState& state) {
  if (state.kind != "timed") return absl::InvalidArgumentError("the state of a replica that is not timed");
  steps_ = state.optimizer_steps;
  samples_ = state.samples_consumed;
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> TimedReplica::Evaluate(uint32_t) {
  return EvaluationResult{.loss = 1, .tokens = tokens_per_step_};
}

}  // namespace atl
