#include "core/merge_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/deterministic_sum.h"
#include "core/fragment_plan.h"

namespace atl {

MergeComparison::MergeComparison(const MergePlan& plan, size_t pieces)
    : plan_(plan), stride_(plan.inputs.size() + 1), sums_(pieces * stride_) {}

void MergeComparison::Add(size_t piece, uint64_t first, std::span<const float> merged) {
  std::array<float, kChunkAlignment> buffer;
  const std::span<float> x = std::span(buffer).first(merged.size());
  double* const sums = sums_.data() + piece * stride_;
  const auto product = [&](std::span<const float> a, std::span<const float> b) {
    return DeterministicDotProduct(merged.size(), a.data(), b.data());
  };
  sums[0] += product(merged, merged);
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    const MergeInput& input = plan_.inputs[i];
    input.codec->DecodeRange(input.payload, plan_.elements, first, x);
    sums[i + 1] += product(x, merged);
  }
}

MergeComparison::Result MergeComparison::Finish() const {
  std::vector<double> totals(stride_, 0.0);
  for (size_t at = 0; at < sums_.size(); ++at) totals[at % stride_] += sums_[at];
  Result result;
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    const double norm = plan_.inputs[i].norm;
    const double merge = std::sqrt(totals[0]);
    const double dot = totals[i + 1];
    result.cosines.push_back(norm > 0 && merge > 0 ? std::clamp(dot / norm / merge, -1.0, 1.0) : 0.0);
    // Of the two squares what the product leaves; rounding must not make it negative.
    result.distances.push_back(std::sqrt(std::max(0.0, norm * norm - 2 * dot + totals[0])));
  }
  return result;
}

}  // namespace atl
