#include "worker/torch/step_numbers.h"

namespace atl {

StepNumbers::StepNumbers(uint32_t steps, const torch::Device& device) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(device);
  newest_ = torch::zeros({2}, options);
  numbers_ = torch::zeros({int64_t{steps}, 2}, options);
  broken_ = torch::zeros({1}, options.dtype(torch::kFloat32));
}

void StepNumbers::Begin() {
  const torch::NoGradGuard no_grad;
  kept_ = 0;
  broken_.zero_();
}

void StepNumbers::Set(const torch::Tensor& loss, const torch::Tensor& squares) {
  const torch::NoGradGuard no_grad;
  newest_[0].copy_(loss);
  newest_[1].copy_(squares);
  // Later steps of a model that has diverged must not change it either.
  const torch::Tensor bad = torch::isfinite(newest_).logical_not().any().to(torch::kFloat32);
  broken_.copy_(torch::maximum(broken_, bad.view({1})));
}

void StepNumbers::Keep() {
  const torch::NoGradGuard no_grad;
  numbers_[kept_++].copy_(newest_);
}

std::vector<StepTotals> StepNumbers::Read() const {
  const torch::Tensor host = numbers_.cpu();
  const auto values = host.accessor<double, 2>();
  std::vector<StepTotals> totals;
  for (int64_t i = 0; i < kept_; ++i)
    totals.push_back({.loss = values[i][0], .gradient_squares = values[i][1]});
  return totals;
}

}  // namespace atl
