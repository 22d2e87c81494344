#ifndef ATOLL_CORE_MEMORY_BOUNDS_H_
#define ATOLL_CORE_MEMORY_BOUNDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "core/memory_plan.h"
#include "core/run_options.h"

namespace atl {

/// What clients may make the coordinator hold, all ports together, beyond what the run itself needs
/// (PlanCoordinatorMemory): the share of strangers. Printed at the start and by `atollctl plan`; the terms
/// are in docs/internals/architecture.md, "Memory of the coordinator".
struct MemoryBounds {
  uint64_t limit = 0;      // that the process has
  uint64_t run = 0;        // of it, the run's peak
  uint64_t strangers = 0;  // of it, for clients that hold what they should not
  // Bytes on the wire of which no message came (a message or a header block without an end), and bytes that
  // wait behind a message which is being worked on. Each has room for the run's own transfers besides.
  uint64_t silent_bytes = 0;
  uint64_t held_bytes = 0;
  uint64_t buffers = 0;    // all of gRPC's: the run's transfers and the strangers' share
  size_t connections = 0;  // to the data and the admin port
  uint64_t open_streams = 0;

  /// False: even the smallest share of strangers does not fit beside the run. The bounds are those of the
  /// smallest share then, and the limit may be passed.
  bool fits() const { return run + strangers <= limit; }
};

/// Of a run whose model is that of its configuration.
absl::StatusOr<CoordinatorMemory> PlanCoordinatorMemory(const RunOptions& run);

MemoryBounds BoundsWithin(uint64_t limit, const CoordinatorMemory& run);

/// The least memory limit with which a run should be started: its peak and what strangers may take then, and
/// not less than what it takes after an overflow; rounded up to 256 MiB.
uint64_t RecommendedMemoryLimit(const CoordinatorMemory& run);

}  // namespace atl

#endif  // ATOLL_CORE_MEMORY_BOUNDS_H_
