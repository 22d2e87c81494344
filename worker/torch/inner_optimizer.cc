#include "worker/torch/inner_optimizer.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

// Elements that one thread takes at a time; a multiple of kSumBlock.
constexpr int64_t kGrain = 16 * kSumBlock;

// The norm of a large vector: float32 within blocks, float64 across them. A norm that LibTorch takes in
// float64 first copies the vector.
torch::Tensor NormOnDevice(const torch::Tensor& values) {
  const auto block = static_cast<int64_t>(kSumBlock);
  const int64_t blocks = values.numel() / block;
  const torch::Tensor whole = values.narrow(0, 0, blocks * block).view({blocks, block});
  const torch::Tensor rest = values.narrow(0, blocks * block, values.numel() - blocks * block);
  const torch::Tensor sum =
      at::linalg_vector_norm(whole, 2, at::IntArrayRef{1}).to(torch::kFloat64).square().sum();
  return (sum + rest.to(torch::kFloat64).square().sum()).sqrt();
}

}  // namespace

InnerOptimizer::InnerOptimizer(const InnerOptions& options, FlatParameters& parameters)
    : options_(options), parameters_(parameters) {
  first_ = torch::zeros_like(parameters.values());
  if (IsAdam()) second_ = torch::zeros_like(parameters.values());
}

bool InnerOptimizer::Decays(size_t tensor) const {
  return options_.optimizer == InnerOptimizerKind::kAdamW && options_.weight_decay > 0 &&
         parameters_.manifest().tensors[tensor].shape.size() >= 2 && !parameters_.lacks_gradient(tensor);
}

void InnerOptimizer::UpdateSegments() {
  const size_t without_gradient = parameters_.tensors_without_gradient();
  if (!segments_.empty() && without_gradient == without_gradient_) return;
  without_gradient_ = without_gradient;
  segments_.clear();
  const FragmentLayout& layout = parameters_.layout();
  for (const TensorSlot& slot : layout.slots) {
    const bool decays = Decays(slot.tensor);
    if (segments_.empty() || segments_.back().decays != decays) {
      const auto begin = static_cast<int64_t>(slot.offset);
      segments_.push_back({segments_.empty() ? 0 : begin, 0, decays});
      if (segments_.size() > 1) segments_[segments_.size() - 2].end = begin;
    }
  }
  segments_.back().end = static_cast<int64_t>(layout.elements);
}

double InnerOptimizer::GradientNorm(double scale) const {
  const torch::Tensor& gradients = parameters_.gradients();
  if (!gradients.device().is_cpu()) {
    return scale * NormOnDevice(gradients).item<double>();
  }
  const float* values = gradients.data_ptr<float>();
  const int64_t elements = gradients.numel();
  std::vector<double> sums(static_cast<size_t>((elements + kGrain - 1) / kGrain), 0.0);
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * kGrain;
      sums[static_cast<size_t>(i)] =
          SumOfSquares(static_cast<size_t>(std::min(elements, begin + kGrain) - begin), values + begin);
    }
  });
  return scale * std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

void InnerOptimizer::Step(double learning_rate, double scale, double norm) {
  const torch::NoGradGuard no_grad;
  double gradient_scale = scale;
  if (options_.clip_norm > 0) gradient_scale *= std::min(1.0, options_.clip_norm / (norm + 1e-6));
  ++steps_;
  UpdateSegments();
  if (parameters_.device().is_cpu()) {
    StepOnHost(learning_rate, static_cast<float>(gradient_scale));
  } else {
    StepOnDevice(learning_rate, static_cast<float>(gradient_scale));
  }
}

AdamStep InnerOptimizer::AdamConstants(double learning_rate, double gradient_scale) const {
  const auto t = static_cast<double>(steps_);
  AdamStep step;
  step.gradient_scale = static_cast<float>(gradient_scale);
  step.beta1 = static_cast<float>(options_.beta1);
  step.beta2 = static_cast<float>(options_.beta2);
  step.one_minus_beta1 = static_cast<float>(1 - options_.beta1);
  step.one_minus_beta2 = static_cast<float>(1 - options_.beta2);
  step.step_size = static_cast<float>(learning_rate / (1 - std::pow(options_.beta1, t)));
  step.inverse_root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
  step.epsilon = static_cast<float>(options_.epsilon);
  return step;
}

void InnerOptimizer::StepOnHost(double learning_rate, float gradient_scale) {
  float* theta = parameters_.values().data_ptr<float>();
  float* gradient = parameters_.gradients().data_ptr<float>();
  float* first = first_.data_ptr<float>();
  float* second = IsAdam() ? second_.data_ptr<float>() : nullptr;
  AdamStep plain = IsAdam() ? AdamConstants(learning_rate, gradient_scale) : AdamStep{};
  AdamStep decaying = plain;
  decaying.keep = static_cast<float>(1 - learning_rate * options_.weight_decay);
  const int64_t elements = parameters_.values().numel();
  at::parallel_for(0, elements, kGrain, [&](int64_t begin, int64_t end) {
    for (const Segment& segment : segments_) {
      const int64_t from = std::max(begin, segment.begin);
      const int64_t to = std::min(end, segment.end);
      if (from >= to) continue;
      const auto size = static_cast<size_t>(to - from);
      if (IsAdam()) {
        AdamRange(segment.decays ? decaying : plain, size, theta + from, gradient + from, first + from,
                  second + from);
      } else {
        SgdRange(gradient_scale, static_cast<float>(options_.momentum), static_cast<float>(learning_rate),
                 size, theta + from, gradient + from, first + from);
      }
    }
  });
}

void InnerOptimizer::StepOnDevice(double learning_rate, float gradient_scale) {
  torch::Tensor theta = parameters_.values();
  torch::Tensor gradient = parameters_.gradients();
  if (IsAdam()) {
    AdamOnDevice(learning_rate, gradient_scale);
  } else {
    first_.mul_(options_.momentum).add_(gradient, gradient_scale);
    theta.add_(first_, -learning_rate);
  }
  gradient.zero_();
}

// One pass over memory, where the passes of the plain form take a tenth of a step of GPT-2 on an H100.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6)
void InnerOptimizer::AdamOnDevice(double learning_rate, float gradient_scale) {
  const torch::Tensor& theta = parameters_.values();
  const auto constant = theta.options();
  const torch::Tensor taken = torch::full({1}, static_cast<double>(steps_), constant);
  std::optional<torch::Tensor> divisor;  // of the gradients
  if (gradient_scale != 1) divisor = torch::full({1}, 1.0 / gradient_scale, constant);
  for (const bool decays : {true, false}) {
    std::vector<torch::Tensor> values, gradients, first, second, steps;
    for (const Segment& segment : segments_) {
      if (segment.decays != decays) continue;
      const int64_t size = segment.end - segment.begin;
      values.push_back(theta.narrow(0, segment.begin, size));
      gradients.push_back(parameters_.gradients().narrow(0, segment.begin, size));
      first.push_back(first_.narrow(0, segment.begin, size));
      second.push_back(second_.narrow(0, segment.begin, size));
      steps.push_back(taken);
    }
    if (values.empty()) continue;
    at::_fused_adamw_(values, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps, learning_rate,
                      options_.beta1, options_.beta2, decays ? options_.weight_decay : 0.0, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false, divisor);
  }
}
#else
void InnerOptimizer::AdamOnDevice(double learning_rate, float gradient_scale) {
  torch::Tensor theta = parameters_.values();
  torch::Tensor gradient = parameters_.gradients();
  gradient.mul_(gradient_scale);
  const AdamStep step = AdamConstants(learning_rate, 1.0);
  for (const Segment& segment : segments_) {
    if (!segment.decays) continue;
    theta.narrow(0, segment.begin, segment.end - segment.begin)
        .mul_(1 - learning_rate * options_.weight_decay);
  }
  first_.mul_(step.beta1).add_(gradient, step.one_minus_beta1);
  second_.mul_(step.beta2).addcmul_(gradient, gradient, step.one_minus_beta2);
  const torch::Tensor denominator = second_.sqrt().mul_(step.inverse_root_correction).add_(step.epsilon);
  theta.addcdiv_(first_, denominator, -step.step_size);
}
#endif

std::vector<torch::Tensor> InnerOptimizer::Vectors() const {
  if (IsAdam()) return {first_, second_};
  return {first_};
}

std::string InnerOptimizer::Kind() const {
  const bool decays = options_.optimizer == InnerOptimizerKind::kAdamW;
  const std::string_view name = !IsAdam() ? "sgd" : decays ? "adamw" : "adam";
  return absl::StrFormat("%s of %d values", std::string(name), first_.numel());
}

void InnerOptimizer::Save(std::vector<std::vector<float>>& moments) const {
  const std::vector<torch::Tensor> vectors = Vectors();
  moments.resize(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    moments[i].resize(static_cast<size_t>(vectors[i].numel()));
    torch::from_blob(moments[i].data(), {vectors[i].numel()}, torch::kFloat32).copy_(vectors[i]);
  }
}

absl::Status InnerOptimizer::Load(uint64_t steps, const std::vector<std::vector<float>>& moments) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> vectors = Vectors();
  bool fits = moments.size() == vectors.size();
  for (size_t i = 0; fits && i < vectors.size(); ++i) {
    fits = moments[i].size() == static_cast<size_t>(vectors[i].numel());
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the state of an inner optimizer does not fit: %d vectors, expected %d of %d values",
                        moments.size(), vectors.size(), first_.numel()));
  }
  for (size_t i = 0; i < vectors.size(); ++i) {
    torch::Tensor& vector = vectors[i];
    // from_blob takes a mutable pointer; the tensor is only read.
    vector.copy_(torch::from_blob(const_cast<float*>(moments[i].data()), {vector.numel()}, torch::kFloat32));
  }
  steps_ = steps;
  // A tensor with a moment has had a gradient.
  for (const TensorSlot& slot : parameters_.layout().slots) {
    if (!parameters_.lacks_gradient(slot.tensor)) continue;
    const torch::Tensor moment =
        first_.narrow(0, static_cast<int64_t>(slot.offset), static_cast<int64_t>(slot.elements));
    if (moment.count_nonzero().item<int64_t>() > 0) parameters_.SawGradient(slot.tensor);
  }
  return absl::OkStatus();
}

}  // namespace atl
