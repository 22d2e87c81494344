#include "core/sparse_codec.h"

#include <algorithm>

namespace atl {

void SparseCodec::DecodeRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                              std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  HeldValues held;
  for (uint64_t done = 0; done < out.size(); done += kBlock) {
    ReadBlock(payload, elements, first + done, held);
    const uint64_t n = out.size() - done;
    for (size_t i = 0; i < held.count && held.positions[i] < n; ++i) {
      out[done + held.positions[i]] = held.values[i];
    }
  }
}

void SparseCodec::AccumulateRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                                  float weight, std::span<float> acc) const {
  HeldValues held;
  for (uint64_t done = 0; done < acc.size(); done += kBlock) {
    ReadBlock(payload, elements, first + done, held);
    const uint64_t n = acc.size() - done;
    for (size_t i = 0; i < held.count && held.positions[i] < n; ++i) {
      acc[done + held.positions[i]] += weight * held.values[i];
    }
  }
}

}  // namespace atl
