#ifndef ATOLL_WORKER_TORCH_INNER_OPTIMIZER_H_
#define ATOLL_WORKER_TORCH_INNER_OPTIMIZER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/run_options.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/rank_collectives.h"
#include "worker/torch/rank_slices.h"
#include "worker/torch/update_kernels.h"

namespace atl {

/// AdamW (decay on tensors of two or more dimensions only, and not before their first gradient), Adam (no
/// decay) or SGD with momentum, as torch.optim has them, over all parameters at once. Its state starts at
/// zero and stays on the parameters' device. Methods throw what LibTorch throws. Not thread-safe.
///
/// One rank of several keeps the state of its slice only (ZeRO-1). Save and Load have the whole state on rank
/// 0, so that a state does not depend on the number of ranks; all ranks call them at the same time.
class InnerOptimizer {
 public:
  /// Where the update is computed.
  enum class Update : uint8_t {
    kWhereParametersAre,
    kByDeviceKernels,  // for tests: also on the processor
  };

  /// `parameters`, and `ranks` unless it is null, outlive the optimizer.
  InnerOptimizer(const InnerOptions& options, FlatParameters& parameters, RankCollectives* ranks = nullptr,
                 Update update = Update::kWhereParametersAre);

  /// Sum of the squares of the gradients, of the own slice.
  double GradientSquares() const;
  /// Global L2 norm of the gradients, which are first multiplied by `scale` (one over the number of
  /// micro-batches that were summed) as Step will see them. Not for one rank of several.
  double GradientNorm(double scale) const;

  /// One step of the own slice with gradients * `scale`, then clipped to options.clip_norm given the norm of
  /// all (as torch.nn.utils.clip_grad_norm_), then sets the slice's gradients to zero.
  void Step(double learning_rate, double scale, double norm);

  /// Whether steps can be queued: by device kernels of Adam that read their scale on the device
  /// (LibTorch 2.6).
  bool CanQueue() const;
  /// GradientSquares as a tensor, without waiting for it: float64, without dimensions.
  torch::Tensor QueueGradientSquares() const;
  /// Counts the next step, and puts its learning rate where QueueStep reads it.
  void BeginQueuedStep(double learning_rate);
  /// Step, without waiting for the norm, which is that of `squares`; the bits are those of Step. Part of a
  /// StepGraph. Where `broken` (float32 [1]) is 1, no parameter and no moment changes; the step counts
  /// nevertheless (Uncount).
  void QueueStep(double scale, const torch::Tensor& squares, const torch::Tensor& broken);
  /// The newest steps changed nothing.
  void Uncount(uint64_t steps) { steps_ -= steps; }

  /// Steps taken.
  uint64_t steps() const { return steps_; }

  /// The optimizer and the size of its vectors, in words: state of another kind does not fit.
  std::string Kind() const;
  /// Its vectors, copied to host memory; `moments` is used again. On ranks but the first: no vectors.
  void Save(std::vector<std::vector<float>>& moments) const;
  /// InvalidArgument, and nothing changes, when they are not as many or not as long as this one's. Only rank
  /// 0's are read; the others return Aborted when they do not fit.
  absl::Status Load(uint64_t steps, const std::vector<std::vector<float>>& moments);

 private:
  /// A run of tensors that decay alike, in elements of the flat vector.
  struct Segment {
    int64_t begin = 0;
    int64_t end = 0;
    bool decays = false;
  };

  bool Decays(size_t tensor) const;
  void UpdateSegments();
  AdamStep AdamConstants(double learning_rate, double gradient_scale) const;
  void StepOnHost(double learning_rate, float gradient_scale);
  void StepOnDevice(double learning_rate, float gradient_scale);
  void AdamOnDevice(double learning_rate, float gradient_scale);
  void SetScalars(double learning_rate);
  // With the learning rate and the number of the step in rate_ and taken_. Gradients are divided by `divisor`
  // first.
  void FusedAdam(const std::optional<torch::Tensor>& divisor, const std::optional<torch::Tensor>& broken);
  std::vector<torch::Tensor> Vectors() const;
  absl::Status CheckMoments(const std::vector<std::vector<float>>& moments) const;
  void Gather(std::vector<std::vector<float>>& moments) const;
  void Scatter(const std::vector<std::vector<float>>& moments);
  void NoteSeenGradients();
  int64_t elements() const { return parameters_.values().numel(); }
  bool IsAdam() const { return options_.optimizer != InnerOptimizerKind::kSgd; }

  const InnerOptions options_;
  FlatParameters& parameters_;
  const bool on_host_;             // the update
  RankCollectives* const ranks_;   // null: this process alone
  const RankSlice slice_;          // whose state is kept; all, but for one rank of several
  std::vector<Segment> segments_;  // within the slice
  size_t without_gradient_ = 0;    // tensors, when the segments were made
  torch::Tensor first_;            // of the slice: Adam's m, or SGD's buffer
  torch::Tensor second_;           // Adam's v
  torch::Tensor rate_;             // on the device, for FusedAdam: float32, without dimensions
  torch::Tensor taken_;            // float32 [1]
  uint64_t steps_ = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_INNER_OPTIMIZER_H_
