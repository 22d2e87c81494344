#ifndef ATOLL_WORKER_TORCH_SMALLER_STEPS_H_
#define ATOLL_WORKER_TORCH_SMALLER_STEPS_H_

#include <string>

#include "core/run_options.h"

// No LibTorch type shows here.

namespace atl {

/// What to do when the memory of a device does not suffice for a step: settings of the run with which the
/// same step takes less of it. `encodes_there`: the device also holds encoders, which can be elsewhere.
std::string SmallerSteps(const InnerOptions& inner, bool encodes_there = false);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_SMALLER_STEPS_H_
