#ifndef ATOLL_CLI_DEVICE_ADVICE_H_
#define ATOLL_CLI_DEVICE_ADVICE_H_

#include <cstdint>
#include <string>

#include "core/memory_plan.h"
#include "core/run_options.h"

namespace atl {

/// Bytes on the device of rank 0 of so many ranks, which share the inner optimizer's state
/// (docs/reference/islands.md, "Memory").
uint64_t OnDeviceOfRank(const WorkerMemory& memory, uint64_t ranks);

/// Which common GPU suffices for a worker of the run, with its device encoders or without them
/// (`atoll-worker --encode-on-cpu`), and up to how many parameters. If none does: the settings with which the
/// largest one suffices, or that no setting helps. `parameters` > 0 and `elements` are the model's, without
/// and with padding; the model is not an external one.
std::string DeviceAdvice(const RunOptions& run, uint64_t parameters, uint64_t elements);

}  // namespace atl

#endif  // ATOLL_CLI_DEVICE_ADVICE_H_
