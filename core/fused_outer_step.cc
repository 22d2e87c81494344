#include "core/fused_outer_step.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/block_merger.h"
#include "core/fragment_plan.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

// v of nesterov; m, v of adam; m, sum of delayed_nesterov.
constexpr size_t kMaxStateVectors = 2;

absl::Status CheckFinite(std::span<const float> values, uint64_t first, const char* what) {
  const std::optional<uint64_t> bad = FirstNonFinite(values);
  if (!bad) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("the outer step makes %s of element %d not finite (%g); the round cannot be committed: "
                      "lower the outer learning rate, or find the contribution that is too large",
                      what, first + *bad, values[*bad]));
}

/// The step on values [first, first + theta_out.size()): stretch by stretch, where some are averaged.
bool StepBlock(const MergePlan& plan, const OuterOptions& options, uint64_t step, uint64_t first,
               std::span<const float> mean, std::span<const float> theta_in, std::span<float> theta_out,
               std::span<const std::span<float>> state) {
  const uint64_t end = first + theta_out.size();
  auto next = std::ranges::upper_bound(plan.averaged, first, {}, &ElementRange::end);
  if (next == plan.averaged.end() || next->begin >= end) {
    return OuterStepRange(options, step, mean, theta_in, theta_out, state);
  }
  bool finite = true;
  for (uint64_t at = first; at < end;) {
    const bool averaged = next != plan.averaged.end() && next->begin <= at;
    const uint64_t limit = next == plan.averaged.end() ? end : averaged ? next->end : next->begin;
    const uint64_t offset = at - first;
    const uint64_t n = std::min(limit, end) - at;
    if (averaged) {
      finite &= AverageRange(options, mean.subspan(offset, n), theta_in.subspan(offset, n),
                             theta_out.subspan(offset, n));
      ++next;
    } else {
      std::array<std::span<float>, kMaxStateVectors> part;
      for (size_t s = 0; s < state.size(); ++s) part[s] = state[s].subspan(offset, n);
      finite &= OuterStepRange(options, step, mean.subspan(offset, n), theta_in.subspan(offset, n),
                               theta_out.subspan(offset, n), std::span(part).first(state.size()));
    }
    at += n;
  }
  return finite;
}

}  // namespace

absl::Status MergeAndStepRange(const MergePlan& plan, const OuterOptions& options, uint64_t step,
                               uint64_t first, std::span<const float> theta_in, std::span<float> theta_out,
                               std::span<const std::span<float>> state, const MergedBlock& on_merged) {
  BlockMerger merger(plan);
  std::array<float, kChunkAlignment> mean_buffer;
  std::array<std::span<float>, kMaxStateVectors> state_block;
  const size_t state_vectors = OuterStateVectors(options.optimizer);
  for (uint64_t done = 0; done < theta_out.size(); done += kChunkAlignment) {
    const uint64_t n = std::min<uint64_t>(kChunkAlignment, theta_out.size() - done);
    const std::span<float> mean = std::span(mean_buffer).first(n);
    for (size_t s = 0; s < state_vectors; ++s) state_block[s] = state[s].subspan(done, n);
    const std::span<const std::span<float>> block_state(state_block.data(), state_vectors);

    merger.Merge(first + done, mean);
    if (on_merged) on_merged(first + done, mean);
    const bool finite = StepBlock(plan, options, step, first + done, mean, theta_in.subspan(done, n),
                                  theta_out.subspan(done, n), block_state);
    if (finite) continue;
    ATOLL_RETURN_IF_ERROR(CheckFinite(theta_out.subspan(done, n), first + done, "the parameter"));
    for (const std::span<float> vector : block_state) {
      ATOLL_RETURN_IF_ERROR(CheckFinite(vector, first + done, "the optimizer state"));
    }
  }
  return absl::OkStatus();
}

}  // namespace atl
