#ifndef ATOLL_CLI_DEVICE_ADVICE_H_
#define ATOLL_CLI_DEVICE_ADVICE_H_

#include <cstdint>
#include <string>

#include "core/memory_plan.h"
#include "core/run_options.h"

namespace atl {

/// Bytes of the inner optimizer's state that each of so many ranks holds, rounded up.
uint64_t OptimizerOfRank(const WorkerMemory& memory, uint64_t ranks);

/// Bytes on the device of rank 0 of so many ranks, which share the inner optimizer's state
/// (docs/reference/islands.md, "Memory").
uint64_t OnDeviceOfRank(const WorkerMemory& memory, uint64_t ranks);

/// Which common GPU suffices for each of `ranks` ranks of a worker, with the device encoders of rank 0 or
/// without them (`atoll-worker --encode-on-cpu`), and up to how many parameters. If none does: the settings,
/// or a larger number of ranks, with which the largest one suffices, or that no setting helps.
/// `parameters` > 0 and `elements` are the model's, without and with padding; the model is not an external
/// one. Requires ranks > 0.
std::string DeviceAdvice(const RunOptions& run, uint64_t parameters, uint64_t elements, uint64_t ranks);

}  // namespace atl

#endif  // ATOLL_CLI_DEVICE_ADVICE_H_
