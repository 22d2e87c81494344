#ifndef ATOLL_CLIENT_SYNC_REPLICA_H_
#define ATOLL_CLIENT_SYNC_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/fragment_encoder.h"
#include "common/clock.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "core/protocol/heartbeat.h"

namespace atl {

/// What one inner step did. `loss` is the mean over the step's tokens, in nats per token.
struct InnerStepResult {
  double loss = 0;
  double gradient_norm = 0;  // global L2 norm before clipping
  uint64_t tokens = 0;       // targets predicted, over all micro-batches
  Duration data{};           // of the step's time, what reading its batches took
};

/// What training costs the replica's device; 0: not known.
struct ComputeCost {
  double flops_per_token = 0;        // floating-point operations of the model, forward and backward
  double peak_flops_per_second = 0;  // of the device
};

/// Mean loss over held-out text, in nats per token.
struct EvaluationResult {
  double loss = 0;
  uint64_t tokens = 0;
};

/// What ScoreTasks is asked for.
struct TaskCall {
  std::vector<std::string> tasks = {};  // as in evaluation.tasks
  /// Asked between questions; true ends the call with Cancelled.
  std::function<bool()> interrupted;
  /// Hears in words how far it is.
  std::function<void(const std::string&)> progress;
};

/// What a replica needs, besides the parameters, to go on as if it had never stopped.
struct ReplicaState {
  /// What can take it up: the optimizer's kind and size, in words; a replica of another kind refuses it.
  std::string kind;
  uint64_t optimizer_steps = 0;
  uint32_t partition = 0;
  uint32_t partitions = 1;
  uint64_t samples_consumed = 0;
  std::string random;                       // of the generator that dropout draws from; opaque
  std::vector<std::vector<float>> moments;  // of the inner optimizer, in the layout of its kind
  std::vector<std::byte> opaque = {};       // of a replica that describes its state itself; may be all of it
};

/// What InnerStep returns when the data is over: the worker pushes what is done and leaves.
absl::Status NoMoreSteps();
bool IsNoMoreSteps(const absl::Status& step);

/// One worker's copy of the model with its inner optimizer and its data: what the outer synchronisation
/// drives. Not thread-safe: one thread owns a replica. Implemented by worker/torch, and by fakes in tests.
class Replica {
 public:
  virtual ~Replica() = default;

  virtual const Manifest& manifest() const = 0;

  /// Copies the fragment's tensors out of the model into `out` (fragment.elements float32, padding set to
  /// zero).
  virtual absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) = 0;

  /// Overwrites the fragment's tensors with `values` (fragment.elements float32). The inner optimizer's state
  /// stays.
  virtual absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) = 0;

  /// Makes the encoder of one fragment's pseudo-gradients. It outlives no replica. By default a
  /// HostFragmentEncoder; a replica on a device overrides it to measure and encode there.
  virtual std::unique_ptr<FragmentEncoder> MakeEncoder(const EncoderOptions& options);

  /// One inner optimizer step at this learning rate, on the next samples of the worker's data.
  /// FailedPrecondition when the loss or the gradient is not finite; the model is then unchanged. NoMoreSteps
  /// when there are none.
  virtual absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) = 0;

  /// One inner step at each of these learning rates, in order; what each did is appended to `results`. Ends
  /// at the first that fails, as InnerStep does, with `results` of the steps before it. May end earlier,
  /// after one step at least. By default it calls InnerStep. A replica on a device overrides it, to wait for
  /// the device once for all of them.
  virtual absl::Status InnerSteps(std::span<const double> learning_rates,
                                  std::vector<InnerStepResult>& results);
  /// How many steps the caller should give to one InnerSteps, when nothing may come between them. May change.
  virtual uint32_t steps_at_once() const { return 1; }

  /// The same for the life of the replica.
  virtual ComputeCost compute_cost() const { return {}; }

  /// Trains on this part of the shared data from now on, from its first sample (see Seek).
  virtual absl::Status SetPartition(uint32_t partition, uint32_t partitions) = 0;

  /// Where the worker stands in its own sequence of samples; Seek continues from there.
  virtual uint64_t samples_consumed() const = 0;
  virtual absl::Status Seek(uint64_t samples_consumed) = 0;

  /// Copies what the next inner steps depend on, besides the parameters, into `state`, whose memory is used
  /// again.
  virtual absl::Status SaveState(ReplicaState& state) = 0;
  /// Takes up what a replica built alike has saved, its place in the data included. InvalidArgument, and
  /// nothing changes, when it is of another kind.
  virtual absl::Status LoadState(const ReplicaState& state) = 0;

  /// Loss of the parameters as they are now on the first `max_batches` batches of the held-out text, dropout
  /// off. OutOfRange when it is not finite, Unimplemented when the replica has no held-out text.
  virtual absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) = 0;

  /// Scores of the parameters as they are now in these tasks, dropout off and in float32, as `atoll-model
  /// eval` measures them. A task that cannot be scored here is left out, with a warning in the log.
  /// Unimplemented, which is the default, when the replica knows no tasks.
  virtual absl::StatusOr<std::vector<TaskScore>> ScoreTasks(const TaskCall& call);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_REPLICA_H_
