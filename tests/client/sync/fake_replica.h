#ifndef ATOLL_TESTS_CLIENT_SYNC_FAKE_REPLICA_H_
#define ATOLL_TESTS_CLIENT_SYNC_FAKE_REPLICA_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client/sync/replica.h"
#include "tests/client/sync/base_watch.h"

namespace atl {

/// Two tensors whose loss is half the squared distance to a target: one inner step is
/// theta -= lr * (theta - target), which a test can repeat in a line.
class FakeReplica final : public Replica {
 public:
  static Manifest MakeManifest() {
    return {{{.name = "weight", .shape = {20, 15}, .embedding = false},
             {.name = "bias", .shape = {7}, .embedding = false}}};
  }

  explicit FakeReplica(float target, float initial = 1.0F)
      : target_(target), tensors_{std::vector<float>(300, initial), std::vector<float>(7, 2 * initial)} {}

  const Manifest& manifest() const override { return manifest_; }
  ComputeCost compute_cost() const override { return cost; }

  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override {
    std::fill(out.begin(), out.end(), 0.0F);
    for (const TensorSlot& slot : fragment.slots) {
      std::copy(tensors_[slot.tensor].begin(), tensors_[slot.tensor].end(),
                out.begin() + static_cast<ptrdiff_t>(slot.offset));
    }
    return absl::OkStatus();
  }

  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override {
    for (const TensorSlot& slot : fragment.slots) {
      std::copy_n(values.begin() + static_cast<ptrdiff_t>(slot.offset), slot.elements,
                  tensors_[slot.tensor].begin());
    }
    return absl::OkStatus();
  }

  std::unique_ptr<FragmentEncoder> MakeEncoder(const EncoderOptions& options) override {
    return std::make_unique<BaseWatch>(options, this);
  }

  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override {
    ++steps;
    if (on_step) {
      const absl::Status status = on_step(steps);
      if (!status.ok()) return status;
    }
    learning_rates.push_back(learning_rate);
    samples_ += 3;
    double loss = 0;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      for (size_t i = 0; i < tensors_[t].size(); ++i) {
        const float target = target_of ? target_of(t, i) : target_;
        float& value = tensors_[t][i];
        loss += 0.5 * (value - target) * (value - target);
        value -= static_cast<float>(learning_rate) * (value - target);
      }
    }
    return InnerStepResult{.loss = loss, .gradient_norm = 1, .tokens = 24};
  }

  uint32_t steps_at_once() const override { return at_once; }

  absl::Status SetPartition(uint32_t partition, uint32_t) override {
    partitions.push_back(partition);
    samples_ = 0;
    return absl::OkStatus();
  }
  uint64_t samples_consumed() const override { return samples_; }
  absl::Status Seek(uint64_t samples) override {
    samples_ = samples;
    return absl::OkStatus();
  }

  absl::Status SaveState(ReplicaState& state) override {
    state.kind = "fake";
    state.optimizer_steps = steps;
    state.samples_consumed = samples_;
    state.moments = {{static_cast<float>(steps)}};
    return absl::OkStatus();
  }
  absl::Status LoadState(const ReplicaState& state) override {
    if (state.kind != "fake") return absl::InvalidArgumentError("of another kind");
    steps = loaded_steps = state.optimizer_steps;
    samples_ = state.samples_consumed;
    return absl::OkStatus();
  }

  absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) override {
    ++evaluations;
    if (on_evaluate) on_evaluate();
    if (!evaluation_error.ok()) return evaluation_error;
    return EvaluationResult{.loss = tensors_[0][0], .tokens = max_batches};
  }

  absl::StatusOr<std::vector<TaskScore>> ScoreTasks(const TaskCall& call) override {
    return on_tasks ? on_tasks(call) : Replica::ScoreTasks(call);
  }

  float first() const { return tensors_[0][0]; }
  const std::vector<float>& tensor(size_t t) const { return tensors_[t]; }

  std::vector<uint32_t> partitions;  // as set
  uint32_t at_once = 1;
  uint64_t steps = 0;
  uint64_t loaded_steps = 0;  // as LoadState found them
  uint64_t evaluations = 0;
  ComputeCost cost;
  std::vector<double> learning_rates;
  /// Before each step, with its number from 1; an error ends the step.
  std::function<absl::Status(uint64_t)> on_step;
  std::function<void()> on_evaluate;
  /// None: the replica knows no tasks.
  std::function<absl::StatusOr<std::vector<TaskScore>>(const TaskCall&)> on_tasks;
  absl::Status evaluation_error;
  /// Of each value of each tensor; none: one target for all.
  std::function<float(size_t tensor, size_t i)> target_of;

 private:
  const Manifest manifest_ = MakeManifest();
  const float target_;
  std::vector<std::vector<float>> tensors_;
  uint64_t samples_ = 0;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_FAKE_REPLICA_H_
