#ifndef ATOLL_SERVER_OPENING_MODEL_MEMORY_H_
#define ATOLL_SERVER_OPENING_MODEL_MEMORY_H_

#include <span>

#include "absl/status/status.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"

namespace atl {

/// FailedPrecondition when the coordinator of this model cannot fit into the memory that it may have: neither
/// a manifest of a kilobyte nor a typing error in a configuration is to ask for terabytes.
absl::Status CheckModelMemory(std::span<const FragmentLayout> layouts);

/// Of a run that is to begin. InvalidArgument naming the field: the model cannot be (core/model_check.h), or
/// not on this machine. Nothing is checked of an external model whose size is not known.
absl::Status CheckNewModel(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_SERVER_OPENING_MODEL_MEMORY_H_
