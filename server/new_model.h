#ifndef ATOLL_SERVER_NEW_MODEL_H_
#define ATOLL_SERVER_NEW_MODEL_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "core/run_options.h"

namespace atl {

/// FailedPrecondition when the coordinator of this model cannot fit into the memory that it may have: neither
/// a manifest of a kilobyte nor a typing error in a configuration is to ask for terabytes.
absl::Status CheckModelMemory(std::span<const FragmentLayout> layouts);

/// Of a run that is to begin. InvalidArgument naming the field: the model cannot be (core/model_check.h), or
/// not on this machine. Nothing is checked of an external model whose size is not known.
absl::Status CheckNewModel(const RunOptions& run);

/// The fragments of the model that a worker brings for a run without one. InvalidArgument or
/// FailedPrecondition when no run of this configuration can begin with it, or not on this machine: a seed of
/// it would only be rejected. Stateless, so thread-safe.
absl::StatusOr<std::vector<FragmentLayout>> LayOutFirstModel(const RunOptions& run, uint32_t fragments,
                                                             const Manifest& manifest);

}  // namespace atl

#endif  // ATOLL_SERVER_NEW_MODEL_H_
