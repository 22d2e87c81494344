#ifndef ATOLL_COMMON_FAULT_POINT_H_
#define ATOLL_COMMON_FAULT_POINT_H_

#include <atomic>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

namespace fault_point_internal {
extern std::atomic<bool> armed;
void Pass(std::string_view name);
}  // namespace fault_point_internal

/// A named place where a test may let the process die as by kill -9, so that every state which a crash can
/// leave on disk is left there on purpose (tests/integration/crash_suite). Off, which it is unless the
/// environment of the coordinator says otherwise, it costs one relaxed load. The names are in
/// docs/reference/storage_format.md.
///
/// The one global of the program: a place deep in the storage must not need to be handed what to die of.
inline void FaultPoint(std::string_view name) {
  if (fault_point_internal::armed.load(std::memory_order_relaxed)) fault_point_internal::Pass(name);
}

/// "name:count": die at the count-th passage (from 1) of that place; empty: never. Call before any thread is
/// started. InvalidArgument when it cannot be read.
absl::Status ArmFaultPoint(std::string_view spec);

}  // namespace atl

#endif  // ATOLL_COMMON_FAULT_POINT_H_
