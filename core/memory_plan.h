#ifndef ATOLL_CORE_MEMORY_PLAN_H_
#define ATOLL_CORE_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>

#include "core/run_options.h"

// The memory of a run: the formulas of docs/internals/architecture.md ("Memory of the coordinator") and
// docs/reference/worker.md ("Memory"). `atollctl plan` prints them, and a test compares them with a running
// coordinator.

namespace atl {

struct MemoryPlanInput {
  uint64_t elements = 0;          // float32 of all fragments' flat vectors, padding included
  uint64_t largest_fragment = 0;  // of them; one fragment: the same
  OuterOptimizerKind outer = OuterOptimizerKind::kNesterov;
  CodecKind push = CodecKind::kFp32;
  CodecKind pull = CodecKind::kFp32;
  std::optional<CodecKind> pull_delta = std::nullopt;
  bool zstd = false;
  uint32_t workers = 1;        // that push and pull at the same time
  uint32_t merge_threads = 1;  // min(shards, processors)
  uint64_t contribution_budget_bytes = 0;
};
MemoryPlanInput MemoryPlanInputOf(const RunOptions& run, uint64_t elements);
MemoryPlanInput MemoryPlanInputOf(const RunOptions& run, uint64_t elements, uint64_t largest_fragment);

/// Bytes of the coordinator's memory, each at its largest.
struct CoordinatorMemory {
  // Always there.
  uint64_t parameters = 0;  // theta; with float32 pulls it is what travels
  uint64_t state = 0;       // the outer optimizer's vectors
  uint64_t next = 0;        // the theta that a round writes; between rounds its buffer is kept
  uint64_t published =
      0;                 // encodings for pulls other than float32: the head's, and the next one's; with delta
                         // pulls the values that travel, the next ones, and the differences that are kept;
                         // with zstd all that is kept for pulls packed besides, at most as large as it is
  uint64_t streams = 0;  // what gRPC and the uploads hold of transfers under way
  uint64_t fixed = 0;    // the program, RocksDB, hashes and checksums of blocks
  // Now and then.
  uint64_t old_snapshot = 0;  // the version before the head, while a slow reader still gets it
  uint64_t reload = 0;        // theta and state read back from disk after a merge that overflowed
  // Contributions are files that are mapped while they are checked and merged: pages that the kernel takes
  // back when it needs them, so not memory that must be there. With room for them a merge reads no disk.
  uint64_t mapped = 0;

  uint64_t usual() const { return parameters + state + next + published + streams + fixed; }
  /// What the machine must have, overflows apart.
  uint64_t peak() const { return usual() + old_snapshot; }
  uint64_t worst() const { return peak() + reload; }
};
CoordinatorMemory PlanCoordinatorMemory(const MemoryPlanInput& input);

/// Bytes of one worker's memory.
struct WorkerMemory {
  uint64_t program = 0;  // the program and LibTorch's libraries, at rest
  uint64_t parameters = 0;
  uint64_t gradients = 0;
  uint64_t optimizer = 0;      // moments
  uint64_t low_precision = 0;  // bf16 copies of the weights under autocast
  uint64_t activations = 0;    // of one micro-batch, estimated
  // Base, residual, pseudo-gradient, a payload each way. Blocking, the pseudo-gradient and what is pulled are
  // of one fragment at a time; overlapped, of each fragment there is a pseudo-gradient that may be on its
  // way, of each exchange in flight a pulled payload, and of one fragment the blend. An answer that is
  // rebased needs the local parameters of each fragment's push too.
  uint64_t exchange = 0;
  uint64_t kept = 0;  // the moments once more, while they are written to the state directory
  // Now and then: overlapped, the local parameters of a worker that evaluates what is published.
  uint64_t evaluation = 0;
  // On a GPU whose kernels encode the pushes: base, two residuals, payload and sums of every fragment, and
  // with several fragments its parameters in one piece. None for a codec without kernels, and with privacy.
  uint64_t device_encoders = 0;
  // The same worker's pinned memory on the host, besides `exchange`: what is copied from and to the GPU.
  uint64_t pinned = 0;
  /// What is on the device that computes, if it is a GPU.
  uint64_t on_device() const {
    return parameters + gradients + optimizer + low_precision + activations + device_encoders;
  }
  /// Of a worker on a CPU.
  uint64_t total() const {
    return program + parameters + gradients + optimizer + low_precision + activations + exchange + kept +
           evaluation;
  }
};
/// Activations are estimated: they depend on kernels and allocator (ModelShape::ActivationBytesPerToken).
WorkerMemory PlanWorkerMemory(const RunOptions& run, uint64_t elements, uint64_t largest_fragment);

}  // namespace atl

#endif  // ATOLL_CORE_MEMORY_PLAN_H_
