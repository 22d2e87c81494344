#ifndef ATOLL_WORKER_CUDA_KERNELS_PUSH_H_
#define ATOLL_WORKER_CUDA_KERNELS_PUSH_H_

#include <algorithm>
#include <cstdint>

#include "core/float_bits.h"
#include "core/fragment_plan.h"
#include "worker/cuda/device.h"

// What all encoding kernels share: the arithmetic around the encoding, and the memory that it is done in.

namespace atl::device {

using ::atl::kChunkAlignment;

/// Values that one block of threads encodes: a codec's block divides it, and the norm is summed over pieces
/// of this size.
inline constexpr uint32_t kChunk = static_cast<uint32_t>(kChunkAlignment);

/// core/error_feedback.h.
enum class Feedback : uint8_t { kCarry, kMovingAverage };

/// A push of one fragment: reads base, local and residual once, writes payload and next residual once. A
/// launch has one block of threads for each kChunk values. `next` is another allocation than `residual`: when
/// a value is not finite, the host keeps the old residual. base, local, residual and next begin at multiples
/// of 16 bytes, payload too.
struct PushArguments {
  GlobalSpan<const float> base;
  GlobalSpan<const float> local;
  GlobalSpan<const float> residual;
  GlobalSpan<float> next;
  GlobalSpan<uint8_t> payload;  // EncodedSize(elements) bytes
  /// Of each chunk, the sum of the squares of what the payload decodes to, in the order of
  /// core/payload_stats.h. The host adds them in the order of the chunks, as AddSquares does.
  GlobalSpan<double> squares;
  /// One: the least index of a sum of pseudo-gradient and residual that is not finite. The host sets it to
  /// `elements` before; while it stays so, payload, squares and next are valid.
  GlobalSpan<unsigned long long> first_bad;
  uint64_t elements = 0;
  float kept = 0;  // of the residual in the sum: beta (carry) or 1 (moving average)
  float beta = 0;
  float rest = 0;  // 1.0f - beta
};

/// The values of one chunk.
struct ChunkRange {
  uint64_t first;
  uint32_t count;  // kChunk, or fewer in the last one
};

ATOLL_DEVICE ChunkRange ChunkOf(uint64_t elements) {
  const uint64_t first = uint64_t{BlockIndex()} * kChunk;
  return {first, static_cast<uint32_t>(std::min<uint64_t>(kChunk, elements - first))};
}

/// One value on its way: what is encoded, and the residual that went into it.
struct Whole {
  float value;
  float residual;
};

ATOLL_DEVICE Whole Sum(const PushArguments& in, uint64_t index, float base, float local, float residual) {
  const float delta = base - local;
  const float value = in.kept * residual + delta;
  if (!IsFiniteBits(value)) in.first_bad.AtomicMin(0, index);
  return {value, residual};
}

/// One value; `index` below in.elements.
ATOLL_DEVICE Whole LoadWhole(const PushArguments& in, uint64_t index) {
  return Sum(in, index, in.base.Load(index), in.local.Load(index), in.residual.Load(index));
}

/// Four neighbours, all below in.elements; `index` is a multiple of 4.
ATOLL_DEVICE void LoadFourWholes(const PushArguments& in, uint64_t index, Whole* wholes) {
  const Four base = in.base.LoadAs<Four>(index);
  const Four local = in.local.LoadAs<Four>(index);
  const Four residual = in.residual.LoadAs<Four>(index);
  ATOLL_UNROLL
  for (uint32_t k = 0; k < 4; ++k) wholes[k] = Sum(in, index + k, base.at[k], local.at[k], residual.at[k]);
}

/// The next residual of a value of which `sent` is what the payload decodes to.
template <Feedback kFeedback>
ATOLL_DEVICE float NextResidual(const PushArguments& in, Whole whole, float sent) {
  const float lost = whole.value - sent;
  if constexpr (kFeedback == Feedback::kCarry) return lost;
  return in.beta * whole.residual + in.rest * lost;
}

template <Feedback kFeedback>
ATOLL_DEVICE void StoreFourNext(const PushArguments& in, uint64_t index, const Whole* wholes,
                                const float* sent) {
  Four next;
  ATOLL_UNROLL
  for (uint32_t k = 0; k < 4; ++k) next.at[k] = NextResidual<kFeedback>(in, wholes[k], sent[k]);
  in.next.StoreAs<Four>(index, next);
}

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_PUSH_H_
