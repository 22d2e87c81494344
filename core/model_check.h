#ifndef ATOLL_CORE_MODEL_CHECK_H_
#define ATOLL_CORE_MODEL_CHECK_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"

// Checks a model's size before the model is built. Stateless, so thread-safe.

namespace atl {

/// The fragments of the configured model. InvalidArgument: it is too large for any run, or it cannot be
/// divided into sync.fragments.
absl::StatusOr<std::vector<FragmentLayout>> LayOutModel(const RunOptions& run);

/// InvalidArgument naming limits.contribution_budget_mib when a contribution to one of the fragments, encoded
/// by codec.push, is larger than the whole budget: no push of it could ever begin.
absl::Status CheckContributionBudget(const RunOptions& run, std::span<const FragmentLayout> layouts);

/// Both, of a configuration.
absl::Status CheckModel(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_CORE_MODEL_CHECK_H_
