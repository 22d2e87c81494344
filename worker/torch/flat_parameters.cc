#include "worker/torch/flat_parameters.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace atl {

absl::StatusOr<FlatParameters> FlatParameters::Create(const Manifest& manifest, const torch::Device& device) {
  ATOLL_RETURN_IF_ERROR(ValidateManifest(manifest));
  ATOLL_ASSIGN_OR_RETURN(std::vector<FragmentLayout> plan, PlanFragments(manifest, 1));
  return FlatParameters(manifest, std::move(plan[0]), device);
}

FlatParameters::FlatParameters(Manifest manifest, FragmentLayout layout, const torch::Device& device)
    : manifest_(std::move(manifest)), layout_(std::move(layout)) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  const auto elements = static_cast<int64_t>(layout_.elements);
  values_ = torch::zeros({elements}, options);
  gradients_ = torch::zeros({elements}, options);
  for (const TensorSlot& slot : layout_.slots) {
    const auto offset = static_cast<int64_t>(slot.offset);
    const auto size = static_cast<int64_t>(slot.elements);
    const std::vector<int64_t>& shape = manifest_.tensors[slot.tensor].shape;
    torch::Tensor view = values_.narrow(0, offset, size).view(shape).detach();
    view.requires_grad_(true);
    view.mutable_grad() = gradients_.narrow(0, offset, size).view(shape);
    views_.push_back(std::move(view));
  }
  lacks_gradient_.resize(views_.size());
}

void FlatParameters::ExpectNoGradient(size_t index) {
  if (!lacks_gradient_[index]) ++tensors_without_gradient_;
  lacks_gradient_[index] = true;
}

void FlatParameters::SawGradient(size_t index) {
  if (lacks_gradient_[index]) --tensors_without_gradient_;
  lacks_gradient_[index] = false;
}

void FlatParameters::CopyOut(const FragmentLayout& fragment, std::span<float> out) const {
  std::fill(out.begin(), out.end(), 0.0f);
  for (const TensorSlot& slot : fragment.slots) {
    const TensorSlot& own = layout_.slots[slot.tensor];
    const auto size = static_cast<int64_t>(own.elements);
    torch::Tensor host = torch::from_blob(out.data() + slot.offset, {size}, torch::kFloat32);
    host.copy_(values_.narrow(0, static_cast<int64_t>(own.offset), size));
  }
}

void FlatParameters::CopyIn(const FragmentLayout& fragment, std::span<const float> in) {
  const torch::NoGradGuard no_grad;
  for (const TensorSlot& slot : fragment.slots) {
    const TensorSlot& own = layout_.slots[slot.tensor];
    const auto size = static_cast<int64_t>(own.elements);
    // from_blob takes a mutable pointer; the tensor is only read.
    torch::Tensor host =
        torch::from_blob(const_cast<float*>(in.data() + slot.offset), {size}, torch::kFloat32);
    values_.narrow(0, static_cast<int64_t>(own.offset), size).copy_(host);
  }
}

}  // namespace atl
