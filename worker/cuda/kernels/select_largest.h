#ifndef ATOLL_WORKER_CUDA_KERNELS_SELECT_LARGEST_H_
#define ATOLL_WORKER_CUDA_KERNELS_SELECT_LARGEST_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "worker/cuda/device.h"
#include "worker/cuda/kernel_defect.h"
#include "worker/cuda/kernels/square_sum.h"

namespace atl::device {

/// Positions, ascending, of the `largest` largest magnitudes of a chunk, of equal ones the lowest positions:
/// the set of core/topk_select.h. The same bisection of thresholds, whose end does not depend on its path. A
/// block's threads are a power of two and at most 1024, so that every warp has a whole number of groups of 32
/// values.
class SelectLargest {
 public:
  static constexpr uint32_t kMostLargest = 128;
  using Positions = SharedArray<uint16_t, kMostLargest>;

  /// Called by all threads, after a barrier behind the writes of `values`. Behind a further barrier
  /// `positions` may be read.
  ATOLL_DEVICE static void Run(const ChunkValues& values, uint32_t count, uint32_t largest,
                               Positions& positions) {
    ATOLL_SHARED(Counts, counts);
    ATOLL_SHARED(WarpCounts, warp_counts);
    for (uint32_t i = ThreadIndex(); i < kRounds; i += BlockThreads()) {
      if (!Planted(KernelDefect::kUninitialisedShared)) counts.Store(i, 0);
    }
    Barrier();
    const Threshold threshold = FindThreshold(values, count, largest, counts);
    Compact(values, count, largest, threshold, warp_counts, positions);
  }

 private:
  // A first guess, and a bisection of 31 bits.
  static constexpr uint32_t kRounds = 40;
  static constexpr uint32_t kMostWarps = 32;
  using Counts = SharedArray<uint32_t, kRounds>;
  using WarpCounts = SharedArray<uint32_t, kMostWarps>;

  struct Threshold {
    int32_t least;   // at least `largest` magnitudes reach it
    uint32_t count;  // how many do
  };

  ATOLL_DEVICE static int32_t Magnitude(float value) {
    return static_cast<int32_t>(std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  }

  ATOLL_DEVICE static uint32_t SumOfWarp(uint32_t count) {
    for (uint32_t mask = kWarp / 2; mask > 0; mask /= 2) count += ShuffleXor(count, mask);
    return count;
  }

  /// How many magnitudes reach `threshold`, in round `round`.
  ATOLL_DEVICE static uint32_t CountFrom(const ChunkValues& values, uint32_t count, int32_t threshold,
                                         uint32_t round, Counts& counts) {
    uint32_t mine = 0;
    for (uint32_t i = ThreadIndex(); i < count; i += BlockThreads()) {
      mine += static_cast<uint32_t>(Magnitude(values.Load(i)) >= threshold);
    }
    mine = SumOfWarp(mine);
    if (ThreadIndex() % kWarp == 0) {
      if (Planted(KernelDefect::kLostAtomic)) {
        counts.Store(round, counts.Load(round) + mine);
      } else {
        counts.AtomicAdd(round, mine);
      }
    }
    Barrier();
    return counts.Load(round);
  }

  /// Every round counts in an element of its own, so that one barrier a round is enough.
  ATOLL_DEVICE static Threshold FindThreshold(const ChunkValues& values, uint32_t count, uint32_t largest,
                                              Counts& counts) {
    int64_t low = 0;
    int64_t high = int64_t{1} << 31;
    uint32_t reach_low = count;
    for (uint32_t round = 0; high - low > 1 && reach_low != largest; ++round) {
      const int64_t probe = low + (high - low) / 2;
      const uint32_t reached = CountFrom(values, count, static_cast<int32_t>(probe), round, counts);
      if (reached >= largest) {
        low = probe;
        reach_low = reached;
      } else {
        high = probe;
      }
    }
    return {static_cast<int32_t>(low), reach_low};
  }

  /// Counts of a warp's values: above the threshold, and equal to it.
  struct Taken {
    uint32_t above = 0;
    uint32_t ties = 0;
  };

  /// The positions of what is above the threshold, and of the first ties that have room. Each warp has
  /// neighbouring values.
  ATOLL_DEVICE static void Compact(const ChunkValues& values, uint32_t count, uint32_t largest,
                                   Threshold threshold, WarpCounts& warp_counts, Positions& positions) {
    const uint32_t warp = ThreadIndex() / kWarp;
    const uint32_t warps = BlockThreads() / kWarp;
    const uint32_t share = kChunk / warps;
    const uint32_t begin = warp * share;
    Taken mine;
    for (uint32_t at = begin; at < begin + share && at < count; at += kWarp) {
      const Group group(values, count, at, threshold.least);
      mine.above += CountBits(group.above);
      mine.ties += CountBits(group.ties);
    }
    if (ThreadIndex() % kWarp == 0) warp_counts.Store(warp, mine.above << 16 | mine.ties);
    Barrier();
    Taken before;
    uint32_t ties = 0;
    for (uint32_t w = 0; w < warps; ++w) {
      const uint32_t counted = warp_counts.Load(w);
      ties += counted & 0xffffu;
      if (w >= warp) continue;
      before.above += counted >> 16;
      before.ties += counted & 0xffffu;
    }
    const uint32_t room = ties - (threshold.count - largest);
    for (uint32_t at = begin; at < begin + share && at < count; at += kWarp) {
      const Group group(values, count, at, threshold.least);
      StorePosition(group, at, before, room, positions);
      before.above += CountBits(group.above);
      before.ties += CountBits(group.ties);
    }
  }

  /// 32 neighbours, one of each thread of the warp.
  struct Group {
    uint32_t above;
    uint32_t ties;

    ATOLL_DEVICE Group(const ChunkValues& values, uint32_t count, uint32_t at, int32_t least) {
      const uint32_t own = at + ThreadIndex() % kWarp;
      const int32_t magnitude = own < count ? Magnitude(values.Load(own)) : -1;
      above = Ballot(magnitude > least);
      ties = Ballot(magnitude == least);
    }
  };

  ATOLL_DEVICE static void StorePosition(const Group& group, uint32_t at, const Taken& before, uint32_t room,
                                         Positions& positions) {
    const uint32_t lane = ThreadIndex() % kWarp;
    const uint32_t lower = (1u << lane) - 1;
    const bool above = (group.above >> lane & 1) != 0;
    const bool tie = (group.ties >> lane & 1) != 0;
    const uint32_t ties = before.ties + CountBits(group.ties & lower);
    if (!above && !(tie && ties < room)) return;
    const uint32_t slot = before.above + CountBits(group.above & lower) + std::min(ties, room);
    positions.Store(Planted(KernelDefect::kRace) ? slot / 2 : slot, static_cast<uint16_t>(at + lane));
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_SELECT_LARGEST_H_
