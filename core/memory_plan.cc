#include "core/memory_plan.h"

#include <algorithm>

#include "core/codec.h"
#include "core/delta.h"
#include "core/fragment_plan.h"
#include "core/model_shape.h"
#include "core/outer_optimizer.h"

namespace atl {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kFloat = sizeof(float);

// The program with RocksDB, its threads and their malloc arenas, at rest; measured at 45 to 75 MiB.
constexpr uint64_t kProgramBytes = 128 * kMiB;
// A worker with LibTorch 1.13 for CPUs (Debian 12), its model of no size worth naming.
constexpr uint64_t kWorkerProgramBytes = 180 * kMiB;
// Of one connection: HTTP/2's window and what gRPC has read or is about to write, in chunks of 1 MiB.
constexpr uint64_t kStreamBytes = 12 * kMiB;
// Per MiB of tensors: two 128-bit hashes, a crc, and the same while the next version is made.
constexpr uint64_t kSealBytesPerMiB = 96;
// Decoded blocks of a merge: one of 1 MiB for each of a few contributions at a time, and the sum.
constexpr uint64_t kMergeScratchBytes = 4 * kMiB;

uint64_t StreamBytes(const MemoryPlanInput& input, uint64_t payload) {
  // A transfer holds no more than it moves; the budget bounds what is under way up.
  const uint64_t up =
      std::min(input.contribution_budget_bytes, input.workers * std::min(kStreamBytes, payload));
  const uint64_t down =
      input.workers * std::min(kStreamBytes, CodecFor(input.pull).EncodedSize(input.largest_fragment));
  return up + down;
}

}  // namespace

MemoryPlanInput MemoryPlanInputOf(const RunOptions& run, uint64_t elements) {
  return MemoryPlanInputOf(run, elements, elements);
}

MemoryPlanInput MemoryPlanInputOf(const RunOptions& run, uint64_t elements, uint64_t largest_fragment) {
  return {.elements = elements,
          .largest_fragment = largest_fragment,
          .outer = run.outer.optimizer,
          .push = run.push_codec,
          .pull = run.pull_codec,
          .pull_delta = run.pull_delta,
          .zstd = run.zstd,
          .workers = run.workers,
          .merge_threads = run.shards,
          .contribution_budget_bytes = run.contribution_budget_bytes};
}

CoordinatorMemory PlanCoordinatorMemory(const MemoryPlanInput& input) {
  const uint64_t payload = CodecFor(input.push).EncodedSize(input.largest_fragment);
  const uint64_t encoded =
      input.pull == CodecKind::kFp32 ? 0 : CodecFor(input.pull).EncodedSize(input.elements);
  const uint64_t vectors = OuterStateVectors(input.outer);
  CoordinatorMemory memory;
  memory.parameters = input.elements * kFloat;
  memory.state = input.elements * kFloat * vectors;
  memory.next = input.largest_fragment * kFloat;
  memory.published = 2 * encoded;
  if (input.pull_delta) {
    // The retained differences, and the one in progress.
    memory.published = (input.elements + input.largest_fragment) * kFloat +
                       (kDeltasKept + 1) * CodecFor(*input.pull_delta).EncodedSize(input.elements);
  }
  if (input.zstd) {
    // Those of the versions that are pulled: the head's, and the differences to it and before it.
    memory.published += CodecFor(input.pull).EncodedSize(input.elements);
    if (input.pull_delta)
      memory.published += kDeltasKept * CodecFor(*input.pull_delta).EncodedSize(input.elements);
  }
  memory.streams = StreamBytes(input, payload);
  memory.fixed = kProgramBytes + input.merge_threads * kMergeScratchBytes +
                 input.elements * kFloat / kMiB * kSealBytesPerMiB;
  memory.old_snapshot = encoded > 0 ? encoded : memory.parameters;
  memory.reload = input.largest_fragment * kFloat * (1 + vectors);
  memory.mapped = input.workers * CodecFor(input.push).EncodedSize(input.elements);
  return memory;
}

namespace {

uint64_t ExchangeBytes(const RunOptions& run, uint64_t elements, uint64_t largest_fragment) {
  const uint64_t bytes = elements * kFloat;
  const uint64_t one = largest_fragment * kFloat;
  const uint64_t always = 2 * bytes + CodecFor(run.push_codec).EncodedSize(elements);
  const uint64_t pulled = CodecFor(run.pull_codec).EncodedSize(largest_fragment);
  if (run.sync.mode == SyncMode::kBlocking) return always + one + pulled;
  const uint64_t local_at_push = run.sync.answer == AnswerUse::kRebase ? bytes : 0;
  return always + bytes + local_at_push + one + run.sync.fragments * pulled;
}

/// What the encoders of worker/cuda/device_encoder.h allocate, all fragments together:
/// DeviceEncoder::MemoryOf.
void AddDeviceEncoders(const RunOptions& run, uint64_t elements, WorkerMemory& memory) {
  if (run.push_codec == CodecKind::kInt8Quantile || run.privacy.enabled()) return;
  const uint64_t payload = CodecFor(run.push_codec).EncodedSize(elements);
  const uint64_t sums = elements / kChunkAlignment * sizeof(double);
  const uint64_t in_one_piece = run.sync.fragments > 1 ? elements * kFloat : 0;
  memory.device_encoders = 3 * elements * kFloat + payload + sums + in_one_piece;
  memory.pinned = 3 * elements * kFloat + payload;
}

}  // namespace

WorkerMemory PlanWorkerMemory(const RunOptions& run, uint64_t elements, uint64_t largest_fragment) {
  const bool half = run.inner.precision == Precision::kBf16;
  const uint64_t bytes = elements * kFloat;
  const uint64_t tokens = uint64_t{run.inner.batch} * run.model.context();
  WorkerMemory memory;
  memory.program = kWorkerProgramBytes;
  memory.parameters = bytes;
  memory.gradients = bytes;
  switch (run.inner.optimizer) {
    case InnerOptimizerKind::kAdamW:
    case InnerOptimizerKind::kAdam:
      memory.optimizer = 2 * bytes;
      break;
    case InnerOptimizerKind::kSgd:
      memory.optimizer = run.inner.momentum > 0 ? bytes : 0;
      break;
  }
  memory.low_precision = half ? bytes / 2 : 0;
  memory.activations =
      tokens * ShapeOf(run.model)->ActivationBytesPerToken(run.inner.precision, run.inner.activations);
  memory.exchange = ExchangeBytes(run, elements, largest_fragment);
  memory.kept = memory.optimizer;
  AddDeviceEncoders(run, elements, memory);
  const bool evaluates = run.evaluation_every > 0 && run.evaluated_by == EvaluatedBy::kWorker;
  if (evaluates && run.sync.mode == SyncMode::kOverlapped) memory.evaluation = bytes;
  return memory;
}

}  // namespace atl
