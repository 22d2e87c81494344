#ifndef ATOLL_SERVER_MODEL_MEMORY_H_
#define ATOLL_SERVER_MODEL_MEMORY_H_

#include <span>

#include "absl/status/status.h"
#include "core/fragment_plan.h"

namespace atoll {

/// FailedPrecondition when the coordinator of this model cannot fit into the memory of this machine: neither
/// a manifest of a kilobyte nor a typing error in a configuration is to ask for terabytes.
absl::Status CheckModelMemory(std::span<const FragmentLayout> layouts);

}  // namespace atoll

#endif  // ATOLL_SERVER_MODEL_MEMORY_H_
