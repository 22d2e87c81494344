#ifndef ATOLL_WORKER_TORCH_FLAT_PARAMETERS_H_
#define ATOLL_WORKER_TORCH_FLAT_PARAMETERS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// All parameters of a model in one float32 vector and all their gradients in another, laid out as the
/// one-fragment plan of the manifest lays them out. The tensors a model computes with are views, so that the
/// optimizer, the gradient norm and the copies in and out are one pass over contiguous memory rather than one
/// per tensor. Padding is zero in both.
class FlatParameters {
 public:
  /// Parameters and gradients are zero. `device` is where both vectors live.
  static absl::StatusOr<FlatParameters> Create(const Manifest& manifest, const torch::Device& device);

  const Manifest& manifest() const { return manifest_; }
  const FragmentLayout& layout() const { return layout_; }
  const torch::Device device() const { return values_.device(); }

  /// The view of tensor `index` (in manifest order), a leaf that requires a gradient and whose gradient is a
  /// view of gradients().
  const torch::Tensor& view(size_t index) const { return views_[index]; }

  const torch::Tensor& values() const { return values_; }        // [layout().elements], float32
  const torch::Tensor& gradients() const { return gradients_; }  // [layout().elements], float32

  /// For a model that may not use all tensors: the optimizer leaves the tensor as it is until SawGradient, as
  /// torch.optim does with a gradient of None. A later step without a gradient counts as one of zero.
  void ExpectNoGradient(size_t index);
  void SawGradient(size_t index);
  bool lacks_gradient(size_t index) const { return lacks_gradient_[index]; }
  size_t tensors_without_gradient() const { return tensors_without_gradient_; }

  /// Copies the fragment's tensors to or from host memory; fragment.elements values, padding zero on the way
  /// out.
  void CopyOut(const FragmentLayout& fragment, std::span<float> out) const;
  void CopyIn(const FragmentLayout& fragment, std::span<const float> in);

 private:
  FlatParameters(Manifest manifest, FragmentLayout layout, const torch::Device& device);

  Manifest manifest_;
  FragmentLayout layout_;
  torch::Tensor values_;
  torch::Tensor gradients_;
  std::vector<torch::Tensor> views_;
  std::vector<bool> lacks_gradient_;
  size_t tensors_without_gradient_ = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_FLAT_PARAMETERS_H_
