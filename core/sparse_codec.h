#ifndef ATOLL_CORE_SPARSE_CODEC_H_
#define ATOLL_CORE_SPARSE_CODEC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/codec.h"
#include "core/fragment_plan.h"

namespace atl {

/// What one block of a sparse payload holds.
struct HeldValues {
  static constexpr size_t kMost = 128;
  size_t count = 0;
  std::array<uint16_t, kMost> positions;  // in the block, ascending
  std::array<float, kMost> values;
};

/// A codec whose payload holds some values of each block of 4096; the others decode to zero.
class SparseCodec : public Codec {
 public:
  static constexpr uint64_t kBlock = kChunkAlignment;

  const SparseCodec* sparse() const final { return this; }
  uint64_t block_elements() const final { return kBlock; }

  /// What the block of a validated payload holds that begins at value `first`, a multiple of kBlock.
  virtual void ReadBlock(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                         HeldValues& held) const = 0;

  void DecodeRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                   std::span<float> out) const final;
  /// Touches the values that are held, and no other.
  void AccumulateRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first, float weight,
                       std::span<float> acc) const final;
};

}  // namespace atl

#endif  // ATOLL_CORE_SPARSE_CODEC_H_
