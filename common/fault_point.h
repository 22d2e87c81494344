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

/// A named place where a test can make the process die as by kill -9, to produce every on-disk state that a
/// crash can leave (tests/integration/crash_suite). Disabled unless the coordinator's environment enables it;
/// then it costs one relaxed load. docs/reference/storage_format.md lists the names.
///
/// The only global of the program, so that the setting need not be passed down to the storage code.
inline void FaultPoint(std::string_view name) {
  if (fault_point_internal::armed.load(std::memory_order_relaxed)) fault_point_internal::Pass(name);
}

/// Sets "name:count": die at the count-th passage (from 1) of that place; empty: never. Call it before any
/// thread starts. InvalidArgument if the text is malformed.
absl::Status ArmFaultPoint(std::string_view spec);

}  // namespace atl

#endif  // ATOLL_COMMON_FAULT_POINT_H_
