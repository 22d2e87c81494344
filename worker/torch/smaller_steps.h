#ifndef ATOLL_WORKER_TORCH_SMALLER_STEPS_H_
#define ATOLL_WORKER_TORCH_SMALLER_STEPS_H_

#include <string>

#include "core/run_options.h"

// No LibTorch type shows here.

namespace atl {

/// What to do when the memory of a device does not suffice for a step: settings of the run with which the
/// same step takes less of it.
std::string SmallerSteps(const InnerOptions& inner);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_SMALLER_STEPS_H_
