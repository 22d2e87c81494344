#ifndef ATOLL_CORE_MERGE_PLAN_H_
#define ATOLL_CORE_MERGE_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/fragment_plan.h"
#include "core/merge.h"

namespace atl {

/// A stretch of a fragment's flat vector in which every contribution has one coefficient.
struct MergeSegment {
  uint64_t end = 0;                      // begins where the one before it ends; a multiple of kSlotAlignment
  std::vector<float> coefficients = {};  // one per input, finite
};

/// How the contributions of a round become one pseudo-gradient. All decisions that need whole tensors are
/// made, so each merged value is a function of the contributions' values at its position. mean, rda, norm
/// guard and centered clipping are all sums with coefficients; trimmed mean and median are taken coordinate
/// by coordinate. Made by MergePlanner (core/merge_planner.h), carried out by BlockMerger.
struct MergePlan {
  uint64_t elements = 0;
  std::vector<MergeInput> inputs = {};      // in summation order
  std::vector<MergeSegment> segments = {};  // ascending, the last one ends at `elements`
  /// Of sparse contributions: the sum is divided, coordinate by coordinate, by the weights of those that hold
  /// the value (a zero that is held counts). Those whose codec is not sparse hold all.
  bool by_presence = false;
  /// Set: not the sum of coefficient * value, but the mean of these products without so many of the smallest
  /// and so many of the largest. Less than half of the inputs.
  std::optional<uint32_t> trimmed = std::nullopt;
  /// Values of averaged tensors (AveragedRanges). The merge is the same there; the step that follows is
  /// AverageRange.
  std::vector<ElementRange> averaged = {};
};

/// The weighted mean: one segment, the inputs' weights.
MergePlan WeightedMeanPlan(std::span<const MergeInput> inputs, uint64_t elements);

}  // namespace atl

#endif  // ATOLL_CORE_MERGE_PLAN_H_
