#include "worker/torch/inner_optimizer.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "absl/strings/str_format.h"
#include "worker/torch/torch_features.h"

namespace atl {
namespace {

// Elements that one thread takes at a time; a multiple of kSumBlock.
constexpr int64_t kGrain = 16 * kSumBlock;

// Sum of the squares of a large vector: float32 within blocks, float64 across them. A norm that LibTorch
// takes in float64 first copies the vector.
torch::Tensor SquaresOnDevice(const torch::Tensor& values) {
  const auto block = static_cast<int64_t>(kSumBlock);
  const int64_t blocks = values.numel() / block;
  const torch::Tensor whole = values.narrow(0, 0, blocks * block).view({blocks, block});
  const torch::Tensor rest = values.narrow(0, blocks * block, values.numel() - blocks * block);
  const torch::Tensor sum =
      at::linalg_vector_norm(whole, 2, at::IntArrayRef{1}).to(torch::kFloat64).square().sum();
  return sum + rest.to(torch::kFloat64).square().sum();
}

}  // namespace

InnerOptimizer::InnerOptimizer(const InnerOptions& options, FlatParameters& parameters,
                               RankCollectives* ranks, Update update)
    : options_(options),
      parameters_(parameters),
      on_host_(parameters.device().is_cpu() && update == Update::kWhereParametersAre),
      ranks_(ranks),
      slice_(ranks == nullptr ? RankSlice{.begin = 0, .end = parameters.values().numel()}
                              : SliceOf(parameters.values().numel(), ranks->rank(), ranks->size())) {
  first_ = torch::zeros({slice_.size()}, parameters.values().options());
  if (IsAdam()) second_ = torch::zeros_like(first_);
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
  for (Segment& segment : segments_) {
    segment.begin = std::clamp(segment.begin, slice_.begin, slice_.end);
    segment.end = std::clamp(segment.end, slice_.begin, slice_.end);
  }
}

double InnerOptimizer::GradientNorm(double scale) const { return scale * std::sqrt(GradientSquares()); }

double InnerOptimizer::GradientSquares() const {
  const torch::Tensor gradients = parameters_.gradients().narrow(0, slice_.begin, slice_.size());
  if (!on_host_) return SquaresOnDevice(gradients).item<double>();
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
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void InnerOptimizer::Step(double learning_rate, double scale, double norm) {
  const torch::NoGradGuard no_grad;
  double gradient_scale = scale;
  if (options_.clip_norm > 0) gradient_scale *= std::min(1.0, options_.clip_norm / (norm + 1e-6));
  ++steps_;
  UpdateSegments();
  if (on_host_) {
    StepOnHost(learning_rate, static_cast<float>(gradient_scale));
  } else {
    StepOnDevice(learning_rate, static_cast<float>(gradient_scale));
  }
}

torch::Tensor InnerOptimizer::QueueGradientSquares() const {
  const torch::NoGradGuard no_grad;
  return SquaresOnDevice(parameters_.gradients().narrow(0, slice_.begin, slice_.size()));
}

void InnerOptimizer::SetScalars(double learning_rate) {
  if (!rate_.defined()) {
    rate_ = torch::zeros({}, parameters_.values().options());
    taken_ = torch::zeros({1}, parameters_.values().options());
  }
  rate_.fill_(learning_rate);
  taken_.fill_(static_cast<double>(steps_));
}

void InnerOptimizer::BeginQueuedStep(double learning_rate) {
  const torch::NoGradGuard no_grad;
  ++steps_;
  UpdateSegments();
  SetScalars(learning_rate);
}

void InnerOptimizer::QueueStep(double scale, const torch::Tensor& squares, const torch::Tensor& broken) {
  const torch::NoGradGuard no_grad;
  // The roundings of Step and of AdamOnDevice.
  torch::Tensor gradient_scale = torch::full_like(squares, scale);
  if (options_.clip_norm > 0) {
    const torch::Tensor norm = squares.sqrt().mul_(scale).add_(1e-6);
    gradient_scale.mul_(torch::full_like(norm, options_.clip_norm).div_(norm).clamp_max_(1.0));
  }
  const torch::Tensor divisor =
      gradient_scale.to(torch::kFloat32).to(torch::kFloat64).reciprocal_().to(torch::kFloat32).view({1});
  FusedAdam(divisor, broken);
  parameters_.gradients().narrow(0, slice_.begin, slice_.size()).zero_();
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
  // As if the moments were of all elements; only those of the slice are touched.
  float* first = first_.data_ptr<float>() - slice_.begin;
  float* second = IsAdam() ? second_.data_ptr<float>() - slice_.begin : nullptr;
  AdamStep plain = IsAdam() ? AdamConstants(learning_rate, gradient_scale) : AdamStep{};
  AdamStep decaying = plain;
  decaying.keep = static_cast<float>(1 - learning_rate * options_.weight_decay);
  at::parallel_for(slice_.begin, slice_.end, kGrain, [&](int64_t begin, int64_t end) {
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
  torch::Tensor theta = parameters_.values().narrow(0, slice_.begin, slice_.size());
  torch::Tensor gradient = parameters_.gradients().narrow(0, slice_.begin, slice_.size());
  if (IsAdam()) {
    AdamOnDevice(learning_rate, gradient_scale);
  } else {
    first_.mul_(options_.momentum).add_(gradient, gradient_scale);
    theta.add_(first_, -learning_rate);
  }
  gradient.zero_();
}

// One pass over memory, where the passes of the plain form take a tenth of a step of GPT-2 on an H100.
#if ATOLL_TORCH_2_6
void InnerOptimizer::AdamOnDevice(double learning_rate, float gradient_scale) {
  std::optional<torch::Tensor> divisor;
  if (gradient_scale != 1) divisor = torch::full({1}, 1.0 / gradient_scale, parameters_.values().options());
  SetScalars(learning_rate);
  FusedAdam(divisor, std::nullopt);
}

void InnerOptimizer::FusedAdam(const std::optional<torch::Tensor>& divisor,
                               const std::optional<torch::Tensor>& broken) {
  const torch::Tensor& theta = parameters_.values();
  for (const bool decays : {true, false}) {
    std::vector<torch::Tensor> values, gradients, first, second, steps;
    for (const Segment& segment : segments_) {
      const int64_t size = segment.end - segment.begin;
      if (segment.decays != decays || size == 0) continue;
      values.push_back(theta.narrow(0, segment.begin, size));
      gradients.push_back(parameters_.gradients().narrow(0, segment.begin, size));
      first.push_back(first_.narrow(0, segment.begin - slice_.begin, size));
      second.push_back(second_.narrow(0, segment.begin - slice_.begin, size));
      steps.push_back(taken_);
    }
    if (values.empty()) continue;
    at::_fused_adamw_(values, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps, rate_, options_.beta1,
                      options_.beta2, decays ? options_.weight_decay : 0.0, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false, divisor, broken);
  }
}

bool InnerOptimizer::CanQueue() const { return !on_host_ && IsAdam() && ranks_ == nullptr; }
#else
bool InnerOptimizer::CanQueue() const { return false; }

void InnerOptimizer::FusedAdam(const std::optional<torch::Tensor>&, const std::optional<torch::Tensor>&) {
  TORCH_CHECK(false, "this LibTorch has no fused Adam that reads its scale on the device");
}

void InnerOptimizer::AdamOnDevice(double learning_rate, float gradient_scale) {
  torch::Tensor theta = parameters_.values().narrow(0, slice_.begin, slice_.size());
  torch::Tensor gradient = parameters_.gradients().narrow(0, slice_.begin, slice_.size());
  gradient.mul_(gradient_scale);
  const AdamStep step = AdamConstants(learning_rate, 1.0);
  for (const Segment& segment : segments_) {
    if (!segment.decays) continue;
    theta.narrow(0, segment.begin - slice_.begin, segment.end - segment.begin)
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
  return absl::StrFormat("%s of %d values", std::string(name), elements());
}

void InnerOptimizer::Save(std::vector<std::vector<float>>& moments) const {
  const std::vector<torch::Tensor> vectors = Vectors();
  const bool keeps = ranks_ == nullptr || ranks_->rank() == 0;
  moments.resize(keeps ? vectors.size() : 0);
  for (size_t i = 0; i < moments.size(); ++i) {
    moments[i].resize(static_cast<size_t>(elements()));
    torch::from_blob(moments[i].data() + slice_.begin, {slice_.size()}, torch::kFloat32).copy_(vectors[i]);
  }
  if (ranks_ != nullptr) Gather(moments);
}

void InnerOptimizer::Gather(std::vector<std::vector<float>>& moments) const {
  const std::vector<torch::Tensor> vectors = Vectors();
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (int rank = 1; rank < ranks_->size(); ++rank) {
      const RankSlice part = SliceOf(elements(), rank, ranks_->size());
      if (part.size() == 0) continue;
      if (ranks_->rank() == rank) ranks_->StartSend(vectors[i], 0)->Wait();
      if (ranks_->rank() != 0) continue;
      const torch::Tensor host =
          torch::from_blob(moments[i].data() + part.begin, {part.size()}, torch::kFloat32);
      torch::Tensor received = first_.is_cpu() ? host : torch::empty({part.size()}, first_.options());
      ranks_->StartReceive(received, rank)->Wait();
      if (!first_.is_cpu()) host.copy_(received);
    }
  }
}

void InnerOptimizer::Scatter(const std::vector<std::vector<float>>& moments) {
  std::vector<torch::Tensor> vectors = Vectors();
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (int rank = 1; rank < ranks_->size(); ++rank) {
      const RankSlice part = SliceOf(elements(), rank, ranks_->size());
      if (part.size() == 0) continue;
      if (ranks_->rank() == rank) ranks_->StartReceive(vectors[i], 0)->Wait();
      if (ranks_->rank() != 0) continue;
      // from_blob takes a mutable pointer; the tensor is only read.
      const torch::Tensor host = torch::from_blob(const_cast<float*>(moments[i].data()) + part.begin,
                                                  {part.size()}, torch::kFloat32);
      ranks_->StartSend(host.to(first_.device()), rank)->Wait();
    }
  }
}

absl::Status InnerOptimizer::CheckMoments(const std::vector<std::vector<float>>& moments) const {
  const size_t vectors = Vectors().size();
  const auto fits = [&](const std::vector<float>& moment) {
    return std::cmp_equal(moment.size(), elements());
  };
  if (moments.size() == vectors && std::ranges::all_of(moments, fits)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the state of an inner optimizer does not fit: %d vectors, expected %d of %d values",
                      moments.size(), vectors, elements()));
}

absl::Status InnerOptimizer::Load(uint64_t steps, const std::vector<std::vector<float>>& moments) {
  const torch::NoGradGuard no_grad;
  const bool has_all = ranks_ == nullptr || ranks_->rank() == 0;
  absl::Status fits = has_all ? CheckMoments(moments) : absl::OkStatus();
  if (ranks_ != nullptr) {
    double failed = fits.ok() ? 0 : 1;
    ranks_->Sum({&failed, 1});
    if (failed > 0 && fits.ok()) fits = absl::AbortedError("rank 0's state does not fit");
  }
  if (!fits.ok()) return fits;
  std::vector<torch::Tensor> vectors = Vectors();
  for (size_t i = 0; has_all && i < vectors.size(); ++i) {
    // from_blob takes a mutable pointer; the tensor is only read.
    vectors[i].copy_(torch::from_blob(const_cast<float*>(moments[i].data()) + slice_.begin, {slice_.size()},
                                      torch::kFloat32));
  }
  if (ranks_ != nullptr) Scatter(moments);
  steps_ = steps;
  NoteSeenGradients();
  return absl::OkStatus();
}

// A tensor with a moment has had a gradient.
void InnerOptimizer::NoteSeenGradients() {
  if (parameters_.tensors_without_gradient() == 0) return;
  const std::vector<TensorSlot>& slots = parameters_.layout().slots;
  std::vector<double> seen(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto offset = static_cast<int64_t>(slots[i].offset);
    const int64_t begin = std::clamp(offset, slice_.begin, slice_.end);
    const int64_t end =
        std::clamp(offset + static_cast<int64_t>(slots[i].elements), slice_.begin, slice_.end);
    const torch::Tensor moment = first_.narrow(0, begin - slice_.begin, end - begin);
    seen[i] = moment.count_nonzero().item<int64_t>() > 0 ? 1 : 0;
  }
  if (ranks_ != nullptr) ranks_->Sum(seen);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (seen[i] > 0 && parameters_.lacks_gradient(slots[i].tensor)) parameters_.SawGradient(slots[i].tensor);
  }
}

}  // namespace atl
