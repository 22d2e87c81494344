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

/// The fragments of the configured model. Of an external model only their sizes, estimated from
/// model.external.parameters: slots are empty. InvalidArgument: it is too large for any run, or it cannot be
/// divided into sync.fragments. FailedPrecondition: nobody knows how many parameters it has.
absl::StatusOr<std::vector<FragmentLayout>> LayOutModel(const RunOptions& run);

/// InvalidArgument when the model is external and has another number of values than
/// model.external.parameters. All values that are exchanged count, those of averaged tensors too.
absl::Status CheckParameters(const ModelOptions& model, const Manifest& manifest);

/// InvalidArgument naming limits.contribution_budget_mib when a contribution to one of the fragments, encoded
/// by codec.push, is larger than the whole budget: no push of it could ever begin.
absl::Status CheckContributionBudget(const RunOptions& run, std::span<const FragmentLayout> layouts);

/// InvalidArgument when every contribution of round.mode async would move averaged tensors by all of its
/// difference: so many workers that differ from a base would move them so many times as far.
absl::Status CheckAveragedTensors(const RunOptions& run, const Manifest& manifest);

/// Size and budget, of a configuration. Nothing is checked of an external model whose size is not known.
absl::Status CheckModel(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_CORE_MODEL_CHECK_H_
