#include "core/merge_plan.h"

namespace atl {

MergePlan WeightedMeanPlan(std::span<const MergeInput> inputs, uint64_t elements) {
  MergePlan plan{.elements = elements, .inputs = {inputs.begin(), inputs.end()}};
  MergeSegment& whole = plan.segments.emplace_back(MergeSegment{.end = elements});
  for (const MergeInput& input : inputs) whole.coefficients.push_back(input.weight);
  return plan;
}

}  // namespace atl
