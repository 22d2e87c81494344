#include "core/topk_select.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/instruction_set.h"
#include "core/fragment_plan.h"

namespace atl {
namespace {

// No sorting: counting how many magnitudes reach a threshold runs at the speed of the L1 cache, so the
// threshold is found by bisection. It ends as soon as exactly k reach it, after some ten counts as a rule.

ATOLL_INLINE int32_t Magnitude(float value) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(value) & 0x7fffffffu);
}

ATOLL_INLINE uint32_t CountFrom(const float* values, uint32_t n, int32_t threshold) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; ++i) count += static_cast<uint32_t>(Magnitude(values[i]) >= threshold);
  return count;
}

struct Threshold {
  int32_t least;   // at least k magnitudes reach it
  uint32_t count;  // so many do; above k only when ties keep it from being k
};

struct FindThreshold {
  ATOLL_KERNEL Threshold Run(const float* values, uint32_t n, uint32_t k) {
    int32_t largest = 0;
    for (uint32_t i = 0; i < n; ++i) largest = std::max(largest, Magnitude(values[i]));
    // `low` is reached by at least k, `high` by fewer. Bits of magnitudes: 2^23 is a factor of 2.
    constexpr int32_t kFourfold = 2 << 23;
    int64_t low = 0;
    int64_t high = int64_t{largest} + 1;
    uint32_t reach_low = n;
    int64_t probe = std::max<int64_t>(largest - kFourfold, 0);
    while (high - low > 1 && reach_low != k) {
      if (probe <= low || probe >= high) probe = low + (high - low) / 2;
      const uint32_t count = CountFrom(values, n, static_cast<int32_t>(probe));
      if (count >= k) {
        low = probe;
        reach_low = count;
      } else {
        high = probe;
      }
      probe = 0;
    }
    return {static_cast<int32_t>(low), reach_low};
  }
};

struct MarkFrom {
  ATOLL_KERNEL void Run(const float* __restrict values, uint32_t n, int32_t threshold,
                        uint8_t* __restrict marks) {
    for (uint32_t i = 0; i < n; ++i) marks[i] = static_cast<uint8_t>(Magnitude(values[i]) >= threshold);
  }
};

}  // namespace

void SelectLargest(std::span<const float> values, std::span<uint16_t> positions) {
  const auto n = static_cast<uint32_t>(values.size());
  const auto k = static_cast<uint32_t>(positions.size());
  const Threshold threshold = RunKernel<FindThreshold>(values.data(), n, k);
  // Equal magnitudes at the threshold of which not all have room.
  uint32_t surplus = threshold.count - k;
  uint32_t ties = 0;
  if (surplus > 0) {
    for (const float value : values) ties += static_cast<uint32_t>(Magnitude(value) == threshold.least);
  }
  uint32_t room = ties - surplus;

  alignas(64) uint8_t marks[kChunkAlignment + sizeof(uint64_t)];
  RunKernel<MarkFrom>(values.data(), n, threshold.least, marks);
  std::memset(marks + n, 0, sizeof(uint64_t));
  size_t taken = 0;
  for (uint32_t first = 0; first < n; first += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, marks + first, sizeof(word));
    for (; word != 0; word &= word - 1) {
      const uint32_t position = first + static_cast<uint32_t>(std::countr_zero(word)) / 8;
      if (surplus > 0 && Magnitude(values[position]) == threshold.least) {
        if (room == 0) continue;
        --room;
      }
      positions[taken++] = static_cast<uint16_t>(position);
    }
  }
}

}  // namespace atl
