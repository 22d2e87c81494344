#ifndef ATOLL_CORE_FUSED_OUTER_STEP_H_
#define ATOLL_CORE_FUSED_OUTER_STEP_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "core/merge_plan.h"
#include "core/outer_optimizer.h"

namespace atl {

/// Values [first, first + merged.size()) of a merge.
using MergedBlock = std::function<void(uint64_t first, std::span<const float> merged)>;

/// Merge and outer step of values [first, first + theta_in.size()) in one pass over memory: block by block of
/// kChunkAlignment elements (which stays in the L1/L2 cache) decode every input, merge, step.
/// The bits are those of MergeRange followed by OuterStepRange on the whole vector. In plan.averaged the step
/// is AverageRange, and the state stays as it is.
///
/// first is a multiple of kChunkAlignment; theta_in, theta_out and every state span have the range's size;
/// theta_out may be theta_in, state is updated in place. Different ranges may run on different threads.
///
/// FailedPrecondition, naming the first element, when a resulting parameter or state value is not finite. The
/// outputs of the range are then unusable: nothing of the round may be committed.
///
/// `on_merged`, when it is set, is shown each block of the merge, in order.
absl::Status MergeAndStepRange(const MergePlan& plan, const OuterOptions& options, uint64_t step,
                               uint64_t first, std::span<const float> theta_in, std::span<float> theta_out,
                               std::span<const std::span<float>> state,
                               const MergedBlock& on_merged = nullptr);

}  // namespace atl

#endif  // ATOLL_CORE_FUSED_OUTER_STEP_H_
