#include "core/merge_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/median.h"

namespace atl {
namespace {

std::vector<double> GuardScales(const MergeOptions& options, std::span<const MergeInput> inputs) {
  std::vector<double> scales(inputs.size(), 1.0);
  if (!options.norm_guard) return scales;
  std::vector<double> norms;
  for (const MergeInput& input : inputs) norms.push_back(input.norm);
  const double median = MedianOfNonZero(norms);
  for (size_t i = 0; i < norms.size(); ++i) {
    if (norms[i] > median) scales[i] = median / norms[i];
  }
  return scales;
}

/// A coefficient beyond float32 belongs to a contribution that is next to nothing; infinity times its zeros
/// would be no number.
float Coefficient(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

}  // namespace

MergePlanner::MergePlanner(const MergeOptions& options, std::span<const MergeInput> inputs,
                           const FragmentLayout& layout)
    : options_(options),
      plan_(WeightedMeanPlan(inputs, layout.elements)),
      scales_(GuardScales(options, inputs)),
      clip_factors_(inputs.size(), 1.0) {
  plan_.averaged = AveragedRanges(layout);
  PlanMean();
  Begin(layout);
}

void MergePlanner::Begin(const FragmentLayout& layout) {
  switch (options_.method) {
    case MergeMethod::kMean:
      plan_.by_presence = options_.sparse_average == SparseAverage::kPresent &&
                          std::ranges::any_of(plan_.inputs, [](const MergeInput& input) {
                            return input.codec->sparse() != nullptr;
                          });
      return;
    case MergeMethod::kRda:
      if (plan_.inputs.size() > 1) BeginRda(layout);
      return;
    case MergeMethod::kTrimmedMean:
      return PlanTrimmed(options_.trim);
    case MergeMethod::kMedian:
      return PlanTrimmed(0.5);
    case MergeMethod::kCenteredClip:
      return BeginClip();
  }
}

void MergePlanner::EndPass() {
  if (options_.method == MergeMethod::kRda) return EndRdaPass();
  const std::vector<std::vector<double>> distances = norm_pass_->Norms();
  ClipStep(distances.front());
}

void MergePlanner::PlanMean() {
  if (!options_.norm_guard) return;  // the weights, as they were recorded
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    plan_.segments.front().coefficients[i] =
        Coefficient(static_cast<double>(plan_.inputs[i].weight) * scales_[i]);
  }
}

void MergePlanner::PlanTrimmed(double trim) {
  const auto n = static_cast<double>(plan_.inputs.size());
  // 0.29 * 100 is a little less than 29 in float64.
  const auto dropped = static_cast<uint32_t>(std::floor(trim * n + 1e-9));
  plan_.trimmed = std::min(dropped, static_cast<uint32_t>((plan_.inputs.size() - 1) / 2));
  std::ranges::transform(scales_, plan_.segments.front().coefficients.begin(), Coefficient);
}

void MergePlanner::BeginRda(const FragmentLayout& layout) {
  const std::vector<float> mean = plan_.segments.front().coefficients;
  plan_.segments.clear();
  std::vector<NormPass::Stretch> stretches;
  for (size_t s = 0; s < layout.slots.size(); ++s) {
    // The gap behind a tensor is zero everywhere and goes with it.
    const uint64_t end = s + 1 < layout.slots.size() ? layout.slots[s + 1].offset : layout.elements;
    plan_.segments.push_back({.end = end, .coefficients = mean});
    if (layout.slots[s].embedding || layout.slots[s].averaged) continue;
    segment_of_stretch_.push_back(s);
    stretches.push_back({.begin = layout.slots[s].offset, .end = end});
  }
  if (stretches.empty()) return;
  norm_pass_.emplace(plan_.inputs, plan_.elements, std::move(stretches));
  norm_pass_->Begin({.quantity = NormPass::Quantity::kNorms});
}

void MergePlanner::EndRdaPass() {
  const std::vector<std::vector<double>> all_norms = norm_pass_->Norms();
  const size_t n = plan_.inputs.size();
  if (directions_.empty()) {
    for (const std::vector<double>& norms : all_norms) {
      std::vector<double>& direction = directions_.emplace_back(n, 0.0);
      double& mean_norm = mean_norms_.emplace_back(0.0);
      for (size_t i = 0; i < n; ++i) {
        const double weight = plan_.inputs[i].weight;
        mean_norm += weight * scales_[i] * norms[i];
        if (norms[i] > 0) direction[i] = weight / norms[i];
      }
    }
    return norm_pass_->Begin({.quantity = NormPass::Quantity::kCombination, .combinations = directions_});
  }
  const double all =
      std::accumulate(plan_.inputs.begin(), plan_.inputs.end(), 0.0,
                      [](double sum, const MergeInput& input) { return sum + double{input.weight}; });
  for (size_t s = 0; s < all_norms.size(); ++s) {
    const double length = all_norms[s].front();
    const double scale = length > kCancelled * all ? mean_norms_[s] / length : 0.0;
    std::ranges::transform(directions_[s], plan_.segments[segment_of_stretch_[s]].coefficients.begin(),
                           [scale](double direction) { return Coefficient(scale * direction); });
  }
  norm_pass_.reset();
}

void MergePlanner::BeginClip() {
  std::vector<double> norms;
  for (size_t i = 0; i < plan_.inputs.size(); ++i) norms.push_back(scales_[i] * plan_.inputs[i].norm);
  radius_ = options_.clip_radius > 0 ? options_.clip_radius : MedianOfNonZero(norms);
  iterations_left_ = std::max(options_.clip_iterations, uint32_t{1});
  center_.assign(plan_.inputs.size(), 0.0);
  ClipStep(norms);  // distances from 0
}

void MergePlanner::ClipStep(std::span<const double> distances) {
  const size_t n = plan_.inputs.size();
  if (options_.clip_radius <= 0 && options_.clip_by_distance) {
    radius_ = MedianOfNonZero({distances.begin(), distances.end()});
  }
  std::vector<double> pulls(n);
  for (size_t i = 0; i < n; ++i) {
    clip_factors_[i] = distances[i] > radius_ ? radius_ / distances[i] : 1.0;
    pulls[i] = static_cast<double>(plan_.inputs[i].weight) * clip_factors_[i];
  }
  // v + sum p_i (x_i - v) = (1 - sum p_i) v + sum p_i x_i
  const double stay = 1.0 - std::accumulate(pulls.begin(), pulls.end(), 0.0);
  std::vector<double> center(n);  // of the contributions as they are, before the guard scaled them
  for (size_t i = 0; i < n; ++i) {
    center_[i] = stay * center_[i] + pulls[i];
    center[i] = center_[i] * scales_[i];
  }
  if (--iterations_left_ > 0) {
    if (!norm_pass_) {
      norm_pass_.emplace(plan_.inputs, plan_.elements,
                         std::vector<NormPass::Stretch>{{.begin = 0, .end = plan_.elements}});
    }
    return norm_pass_->Begin(
        {.quantity = NormPass::Quantity::kDistances, .combinations = {center}, .scales = scales_});
  }
  norm_pass_.reset();
  std::ranges::transform(center, plan_.segments.front().coefficients.begin(), Coefficient);
}

}  // namespace atl
