#ifndef ATOLL_WORKER_TORCH_TORCH_REPLICA_H_
#define ATOLL_WORKER_TORCH_TORCH_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/replica.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/run_options.h"
#include "core/token_width.h"
#include "worker/cuda/device_queue.h"
#include "worker/torch/rank_group.h"
#include "worker/torch/sampling.h"
#include "worker/torch/step_graph.h"
#include "worker/torch/token_scores.h"

// No LibTorch type shows here: this is the folder's border.

namespace atl {

class TorchReplica;

struct TorchReplicaOptions {
  RunOptions run;  // model, inner loop, seed, evaluation
  /// "auto" (the first CUDA device when there is one, else the CPU), "cpu", "cuda" or "cuda:N".
  std::string device = "auto";
  /// Threads for the arithmetic; 0: what LibTorch chooses. Process-wide in LibTorch, so that the last one set
  /// holds.
  int threads = 0;
  /// Folder of token files (worker/data/dataset.h). Empty: a model only, which cannot train or evaluate.
  std::string dataset_folder;
  /// The part of the data that this worker trains on; partition < partitions.
  uint32_t partition = 0;
  uint32_t partitions = 1;
  /// Outlives the replica. Null: InnerStepResult.data is not measured.
  const Clock* clock = nullptr;
  /// ScoreTasks of the replica, which is the first argument. Empty: the replica knows no tasks.
  std::function<absl::StatusOr<std::vector<TaskScore>>(TorchReplica&, const TaskCall&)> score_tasks = {};
  /// Says where pushes are encoded.
  Logger log = {};
  /// For tests: pushes are encoded on these queues, whatever the device is. Empty: on the replica's GPU, if
  /// the kernels are built in and have the codec, else on the processor.
  DeviceQueueFactory device_queues = {};
  /// Pushes are encoded on the processor, whatever the device is: its memory is then the model's alone.
  bool encode_on_cpu = false;
  /// Steps that are queued are recorded once and replayed (StepGraph), on a GPU in a build with the kernels.
  /// Not with documents that are kept apart, with a model from elsewhere, or with dropout in activations that
  /// are computed again: a graph draws its random numbers in one sequence.
  bool graph_steps = false;
  /// For tests: the optimizer's update, and steps that are queued, as on a GPU.
  bool as_on_gpu = false;
  /// For tests: with graph_steps, on any device.
  StepGraphFactory step_graphs = {};
  /// Outlives the replica. Not null: this replica is that of one rank of an island. All ranks make the same
  /// calls in the same order, save those of ReadFragment, Generate and Score, and a call that shares nothing
  /// may fail on one rank alone. Their steps take ranks * batch sequences per micro-batch, of which each rank
  /// computes its part. A step that fails on one rank fails on all; on those that did not fail with Aborted.
  /// SaveState and LoadState have the whole state on rank 0.
  RankGroup* ranks = nullptr;
};

/// How text is drawn from the model.
struct GenerateOptions {
  uint32_t tokens = 200;  // to generate at most
  SamplingOptions sampling;
};

/// Takes the tokens of a text as they are drawn. False ends the text.
using TokenSink = std::function<bool(TokenId)>;

/// A model on LibTorch (worker/torch/language_model.h) with its inner optimizer and its data. One thread owns
/// it.
class TorchReplica : public Replica {
 public:
  /// Continues `prompt` (token ids; empty: starts from token 0) with the parameters as they are now, dropout
  /// off, and gives `take` the drawn tokens. The model sees the newest tokens of its context; when that is
  /// full, it goes on with the newest half of it. InvalidArgument when a prompt token is outside the
  /// vocabulary; FailedPrecondition when the model's output is not finite.
  virtual absl::Status Generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                const TokenSink& take) = 0;

  /// Scores the tokens of texts with the parameters as they are now, dropout off, in the order of `requests`.
  /// InvalidArgument when a text is empty or longer than context + 1, `first` is outside it, or a token is
  /// outside the vocabulary; FailedPrecondition when a score is not finite; Cancelled when
  /// `options.interrupted` has ended it.
  virtual absl::StatusOr<std::vector<TokenScores>> Score(std::span<const ScoreRequest> requests,
                                                         const ScoreOptions& options) = 0;

  /// Replaces the data partition and starts at its first sample (see Seek). Needs a dataset.
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override = 0;

  /// SHA-256 of the dataset, for Join; empty without one.
  virtual std::string dataset_fingerprint() const = 0;

  /// The device in words, e.g. "cpu (2 threads)" or "cuda:0".
  virtual std::string device() const = 0;
};

/// Builds the model with its seeded initial parameters and opens the dataset. InvalidArgument for a device
/// that is not there, a bad model shape, or bad files (naming them); ResourceExhausted when memory does not
/// suffice.
absl::StatusOr<std::unique_ptr<TorchReplica>> CreateTorchReplica(const TorchReplicaOptions& options);

/// What TorchReplicaOptions.device means on this machine: "cpu" or "cuda:N". InvalidArgument, naming the
/// existing devices, when it is missing.
absl::StatusOr<std::string> ResolveDevice(const std::string& device);

/// Version of LibTorch that this program runs with, e.g. "1.13.0".
std::string TorchVersion();

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_TORCH_REPLICA_H_
