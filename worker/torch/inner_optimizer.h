#ifndef ATOLL_WORKER_TORCH_INNER_OPTIMIZER_H_
#define ATOLL_WORKER_TORCH_INNER_OPTIMIZER_H_

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/run_options.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/update_kernels.h"

namespace atl {

/// AdamW (decay on tensors of two or more dimensions only, and not before their first gradient), Adam (no
/// decay) or SGD with momentum, as torch.optim has them, over all parameters at once. Its state starts at
/// zero and stays on the parameters' device. Methods throw what LibTorch throws. Not thread-safe.
class InnerOptimizer {
 public:
  /// `parameters` outlives the optimizer.
  InnerOptimizer(const InnerOptions& options, FlatParameters& parameters);

  /// Global L2 norm of the gradients, which are first multiplied by `scale` (one over the number of
  /// micro-batches that were summed) as Step will see them.
  double GradientNorm(double scale) const;

  /// One step with gradients * `scale`, then clipped to options.clip_norm given their norm (as
  /// torch.nn.utils.clip_grad_norm_), then sets the gradients to zero.
  void Step(double learning_rate, double scale, double norm);

  /// Steps taken.
  uint64_t steps() const { return steps_; }

  /// The optimizer and the size of its vectors, in words: state of another kind does not fit.
  std::string Kind() const;
  /// Its vectors, copied to host memory; `moments` is used again.
  void Save(std::vector<std::vector<float>>& moments) const;
  /// InvalidArgument, and nothing changes, when they are not as many or not as long as this one's.
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
  std::vector<torch::Tensor> Vectors() const;
  bool IsAdam() const { return options_.optimizer != InnerOptimizerKind::kSgd; }

  const InnerOptions options_;
  FlatParameters& parameters_;
  std::vector<Segment> segments_;
  size_t without_gradient_ = 0;  // tensors, when the segments were made
  torch::Tensor first_;          // Adam's m, or SGD's buffer
  torch::Tensor second_;         // Adam's v
  uint64_t steps_ = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_INNER_OPTIMIZER_H_
