#ifndef ATOLL_WORKER_CUDA_KERNELS_ENCODE_TOPK_H_
#define ATOLL_WORKER_CUDA_KERNELS_ENCODE_TOPK_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "core/float_bits.h"
#include "core/topk_format.h"
#include "worker/cuda/device.h"
#include "worker/cuda/kernel_defect.h"
#include "worker/cuda/kernels/push.h"
#include "worker/cuda/kernels/select_largest.h"
#include "worker/cuda/kernels/square_sum.h"
#include "worker/cuda/kernels/topk_block.h"
#include "worker/cuda/kernels/two_means.h"

namespace atl::device {

/// kLargest of each 4096 values; kTwoBits: with two levels, else as bf16. A block's threads are a power of
/// two.
template <uint32_t kLargest, bool kTwoBits, Feedback kFeedback>
struct EncodeTopK {
  static constexpr const char* kName = "encode_topk";
  using Arguments = PushArguments;
  using Format = TopKBlock<kLargest, kTwoBits>;
  using Held = SharedArray<float, kLargest>;

  ATOLL_DEVICE static void Run(const PushArguments& in) {
    ATOLL_SHARED(ChunkValues, values);
    ATOLL_SHARED(SelectLargest::Positions, positions);
    ATOLL_SHARED(Held, held);
    ATOLL_SHARED(Held, sent);
    ATOLL_SHARED(typename Format::Words, words);
    const ChunkRange chunk = ChunkOf(in.elements);
    const PositionCoding coding = TopKPositions(kLargest, chunk.count);
    Load(in, chunk, values);
    for (uint32_t i = ThreadIndex(); i < Format::kWords; i += BlockThreads()) words.Store(i, 0);
    Barrier();
    SelectLargest::Run(values, chunk.count, coding.held, positions);
    if (Planted(KernelDefect::kLeavesBeforeBarrier) && ThreadIndex() == BlockThreads() - 1) return;
    Barrier();
    for (uint32_t i = ThreadIndex(); i < coding.held; i += BlockThreads()) {
      held.Store(i, values.Load(positions.Load(i)));
    }
    if (Planted(KernelDefect::kDivergentBarrier) && ThreadIndex() % 2 == 0) Barrier();
    Barrier();
    StoreHeld(in, chunk, coding, positions, held, sent, words);
    Barrier();
    StoreSquares(in, coding, positions, sent);
    StoreWords(in, chunk, Format::Bytes(coding), words);
  }

 private:
  /// Sums to shared memory, and the next residual of what is not sent; what is sent gets its own later.
  ATOLL_DEVICE static void Load(const PushArguments& in, ChunkRange chunk, ChunkValues& values) {
    constexpr float kNothing[4] = {};
    for (uint32_t at = 4 * ThreadIndex(); at < chunk.count; at += 4 * BlockThreads()) {
      if (at + 4 <= chunk.count) {
        Whole wholes[4];
        LoadFourWholes(in, chunk.first + at, wholes);
        StoreFourNext<kFeedback>(in, chunk.first + at, wholes, kNothing);
        values.template StoreAs<Four>(
            at, Four{wholes[0].value, wholes[1].value, wholes[2].value, wholes[3].value});
        continue;
      }
      const uint32_t end = Planted(KernelDefect::kShortLastBlock) ? chunk.count - 1 : chunk.count;
      for (uint32_t i = at; i < end; ++i) {
        const Whole whole = LoadWhole(in, chunk.first + i);
        in.next.Store(chunk.first + i, NextResidual<kFeedback>(in, whole, 0));
        values.Store(i, whole.value);
      }
    }
  }

  /// Codes of positions and values, what they decode to, and the next residual there.
  ATOLL_DEVICE static void StoreHeld(const PushArguments& in, ChunkRange chunk, const PositionCoding& coding,
                                     const SelectLargest::Positions& positions, const Held& held, Held& sent,
                                     typename Format::Words& words) {
    TwoMeans means = {};
    if constexpr (kTwoBits) {
      means = TwoMeans::Of(held, coding.held);
      if (ThreadIndex() == 0) Format::StoreLevels(coding, means, words);
    }
    for (uint32_t i = ThreadIndex(); i < coding.held; i += BlockThreads()) {
      const uint32_t position = positions.Load(i);
      const float value = held.Load(i);
      Format::StorePosition(coding, i, position, words);
      const float decoded = Format::StoreValue(coding, i, value, means, words);
      sent.Store(i, decoded);
      const uint64_t index = chunk.first + position;
      // Under carry the residual that went into the sum does not matter, and is not read again.
      const float residual = kFeedback == Feedback::kCarry ? 0 : in.residual.Load(index);
      in.next.Store(index, NextResidual<kFeedback>(in, {value, residual}, decoded));
    }
  }

  /// As AddSparseSquares (core/payload_stats.cc): what is held, by position, in the lanes of a whole chunk.
  ATOLL_DEVICE static void StoreSquares(const PushArguments& in, const PositionCoding& coding,
                                        const SelectLargest::Positions& positions, const Held& sent) {
    const uint32_t thread = ThreadIndex();
    if (thread >= kWarp) return;
    double sum = 0;
    if (thread < kSumLanes) {
      for (uint32_t i = 0; i < coding.held; ++i) {
        if (positions.Load(i) % kSumLanes != thread) continue;
        const auto value = static_cast<double>(sent.Load(i));
        sum += value * value;
      }
    }
    sum = AddLanes(sum);
    if (thread == 0) in.squares.Store(BlockIndex(), sum);
  }

  ATOLL_DEVICE static void StoreWords(const PushArguments& in, ChunkRange chunk, uint32_t bytes,
                                      const typename Format::Words& words) {
    const uint64_t out = chunk.first / kChunk * Format::kWholeBytes;
    const uint32_t whole = bytes / 4;
    for (uint32_t i = ThreadIndex(); i < whole; i += BlockThreads()) {
      in.payload.StoreAs<uint32_t>(out + uint64_t{4} * i, words.Load(i));
    }
    for (uint32_t i = 4 * whole + ThreadIndex(); i < bytes; i += BlockThreads()) {
      in.payload.Store(out + i, static_cast<uint8_t>(words.Load(i / 4) >> (i % 4 * 8)));
    }
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_ENCODE_TOPK_H_
