#ifndef ATOLL_CORE_MEMORY_BOUNDS_H_
#define ATOLL_CORE_MEMORY_BOUNDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "core/memory_plan.h"
#include "core/run_options.h"

namespace atl {

/// Limits of the memory that untrusted clients can use in the coordinator, over all ports, beyond the run's
/// own needs (PlanCoordinatorMemory). Printed at the start and by `atollctl plan`;
/// docs/internals/architecture.md, "Memory of the coordinator", explains the terms.
struct MemoryBounds {
  uint64_t limit = 0;      // that the process has
  uint64_t run = 0;        // of it, the run's peak
  uint64_t strangers = 0;  // of it, for misbehaving clients
  // Bytes on the wire of which no message came (a message or a header block without an end), and bytes that
  // wait behind a message which is being worked on. Each has room for the run's own transfers besides.
  uint64_t silent_bytes = 0;
  uint64_t held_bytes = 0;
  uint64_t buffers = 0;    // all of gRPC's: the run's transfers and the strangers' share
  size_t connections = 0;  // to the data and the admin port
  uint64_t open_streams = 0;

  /// False if even the smallest share for other clients does not fit next to the run. Then the bounds are
  /// those of the smallest share, and the limit may be exceeded.
  bool fits() const { return run + strangers <= limit; }
};

/// Of a run whose model is that of its configuration. Errors as of LayOutModel (core/model_check.h).
absl::StatusOr<CoordinatorMemory> PlanCoordinatorMemory(const RunOptions& run);

MemoryBounds BoundsWithin(uint64_t limit, const CoordinatorMemory& run);

/// The smallest recommended memory limit of a run: its peak plus the share of other clients, at least its
/// size after an overflow, rounded up to 256 MiB.
uint64_t RecommendedMemoryLimit(const CoordinatorMemory& run);

}  // namespace atl

#endif  // ATOLL_CORE_MEMORY_BOUNDS_H_
