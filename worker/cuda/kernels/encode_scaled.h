#ifndef ATOLL_WORKER_CUDA_KERNELS_ENCODE_SCALED_H_
#define ATOLL_WORKER_CUDA_KERNELS_ENCODE_SCALED_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/codec_format.h"
#include "core/float_bits.h"
#include "core/scaled_formats.h"
#include "worker/cuda/device.h"
#include "worker/cuda/kernel_defect.h"
#include "worker/cuda/kernels/push.h"
#include "worker/cuda/kernels/square_sum.h"

namespace atl::device {

/// The bits of std::numeric_limits<float>::quiet_NaN() on the processor; a GPU's own NaN has others.
inline constexpr uint32_t kNanBits = 0x7fc00000;

/// Where a warp keeps a block of up to 256 values (core/scaled_blocks.h): 8 in each thread. In a whole block
/// thread t has the values 4t..4t+3 and 128+4t..128+4t+3, so that it loads them in accesses of 16 bytes and
/// the codes of 4 bits, of which byte j holds the values j and 128 + j, are whole words of its own. In a
/// shorter one it has the values t + 32k and half + t + 32k.
template <unsigned kBits>
struct BlockPlace {
  static constexpr bool kNibbles = kBits == 4;
  static constexpr uint32_t kBlock = static_cast<uint32_t>(kScaledBlock);
  static constexpr uint32_t kHalf = kBlock / 2;
  static constexpr uint32_t kBlockBytes = kScaleBytes + (kNibbles ? kHalf : kBlock);

  uint32_t values;  // of the block
  uint32_t lane;

  ATOLL_DEVICE bool whole() const { return values == kBlock; }
  ATOLL_DEVICE uint32_t half() const { return (values + 1) / 2; }
  /// Of value k of the lower four, and of the upper four; `values` where there is none.
  ATOLL_DEVICE uint32_t Lower(uint32_t k) const {
    const uint32_t at = lane + kWarp * k;
    return at < half() ? at : values;
  }
  ATOLL_DEVICE uint32_t Upper(uint32_t k) const {
    const uint32_t at = half() + lane + kWarp * k;
    return at < values ? at : values;
  }
  ATOLL_DEVICE uint32_t At(uint32_t k) const { return k < 4 ? Lower(k) : Upper(k - 4); }
};

template <typename Format, Feedback kFeedback>
struct EncodeScaled {
  static constexpr const char* kName = "encode_scaled";
  using Arguments = PushArguments;
  using Place = BlockPlace<Format::kBits>;

  ATOLL_DEVICE static void Run(const PushArguments& in) {
    ATOLL_SHARED(ChunkValues, sent);
    const ChunkRange chunk = ChunkOf(in.elements);
    const uint32_t warps = BlockThreads() / kWarp;
    for (uint32_t first = ThreadIndex() / kWarp * Place::kBlock; first < chunk.count;
         first += warps * Place::kBlock) {
      const uint32_t values = std::min(uint32_t{Place::kBlock}, chunk.count - first);
      EncodeBlock(in, {values, ThreadIndex() % kWarp}, chunk.first + first, first, sent);
    }
    if (!Planted(KernelDefect::kMissingBarrier)) Barrier();
    StoreSquares(sent, chunk.count, in);
  }

 private:
  /// A block of values from `index` on, which are sent[first ...].
  ATOLL_DEVICE static void EncodeBlock(const PushArguments& in, Place place, uint64_t index, uint32_t first,
                                       ChunkValues& sent) {
    Whole wholes[8];
    LoadBlock(in, place, index, wholes);
    const float scale = ScaleOf(LargestBits(wholes));
    uint32_t codes[8] = {};
    if (scale > 0) {  // else all zero, too small for a scale, or NaN
      const Format format(scale);
      ATOLL_UNROLL
      for (uint32_t k = 0; k < 8; ++k) codes[k] = format.Code(wholes[k].value) & ((1u << Format::kBits) - 1);
    }
    const uint64_t out = index / Place::kBlock * Place::kBlockBytes;
    if (place.lane == 0) in.payload.StoreAs<float>(out, scale);
    if (place.whole()) {
      StoreCodes(in, place, out + kScaleBytes, codes);
    } else {
      StoreShortCodes(in, place, out + kScaleBytes, codes);
    }
    float values[8];
    ATOLL_UNROLL
    for (uint32_t k = 0; k < 8; ++k) values[k] = Format::Value(codes[k]) * scale;
    StoreResults(in, place, index, first, wholes, values, sent);
  }

  ATOLL_DEVICE static void LoadBlock(const PushArguments& in, Place place, uint64_t index, Whole* wholes) {
    if (place.whole()) {
      LoadFourWholes(in, index + 4 * place.lane, wholes);
      LoadFourWholes(in, index + Place::kHalf + 4 * place.lane, wholes + 4);
      return;
    }
    const bool beyond = Planted(KernelDefect::kOutOfBounds);
    ATOLL_UNROLL
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t at = place.At(k);
      wholes[k] = at < place.values || beyond ? LoadWhole(in, index + at) : Whole{0, 0};
    }
  }

  /// Bits of the largest magnitude of the warp's values; infinity and NaN stand above all numbers.
  ATOLL_DEVICE static int32_t LargestBits(const Whole* wholes) {
    int32_t largest = 0;
    ATOLL_UNROLL
    for (uint32_t k = 0; k < 8; ++k) {
      largest =
          std::max(largest, static_cast<int32_t>(std::bit_cast<uint32_t>(wholes[k].value) & 0x7fffffffu));
    }
    const uint32_t from = Planted(KernelDefect::kWrongMask) ? kWarp / 4 : kWarp / 2;
    for (uint32_t mask = from; mask > 0; mask /= 2) largest = std::max(largest, ShuffleXor(largest, mask));
    return largest;
  }

  ATOLL_DEVICE static float ScaleOf(int32_t largest) {
    return largest < kFloatInfinityBits ? Format::Scale(std::bit_cast<float>(largest))
                                        : std::bit_cast<float>(kNanBits);
  }

  ATOLL_DEVICE static void StoreCodes(const PushArguments& in, Place place, uint64_t out,
                                      const uint32_t* codes) {
    uint32_t lower = 0;
    uint32_t upper = 0;
    ATOLL_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      lower |= codes[k] << (8 * k);
      upper |= codes[4 + k] << (8 * k);
    }
    if constexpr (Place::kNibbles) {
      in.payload.StoreAs<uint32_t>(out + 4 * place.lane, lower | upper << 4);
    } else {
      in.payload.StoreAs<uint32_t>(out + 4 * place.lane, lower);
      in.payload.StoreAs<uint32_t>(out + Place::kHalf + 4 * place.lane, upper);
    }
  }

  ATOLL_DEVICE static void StoreShortCodes(const PushArguments& in, Place place, uint64_t out,
                                           const uint32_t* codes) {
    if (Planted(KernelDefect::kUnalignedTail) && place.lane == 0)
      in.payload.StoreAs<uint32_t>(out + 1, codes[0]);
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t lower = place.Lower(k);
      if (lower == place.values) continue;
      const uint32_t upper = place.Upper(k);
      if constexpr (Place::kNibbles) {
        in.payload.Store(out + lower,
                         static_cast<uint8_t>(codes[k] | (upper < place.values ? codes[4 + k] << 4 : 0)));
      } else {
        in.payload.Store(out + lower, static_cast<uint8_t>(codes[k]));
        if (upper < place.values) in.payload.Store(out + upper, static_cast<uint8_t>(codes[4 + k]));
      }
    }
  }

  ATOLL_DEVICE static void StoreResults(const PushArguments& in, Place place, uint64_t index, uint32_t first,
                                        const Whole* wholes, const float* values, ChunkValues& sent) {
    if (place.whole()) {
      ATOLL_UNROLL
      for (uint32_t k = 0; k < 8; k += 4) {
        const uint32_t at = (k == 0 ? 0 : Place::kHalf) + 4 * place.lane;
        StoreFourNext<kFeedback>(in, index + at, wholes + k, values + k);
        sent.template StoreAs<Four>(first + at, Four{values[k], values[k + 1], values[k + 2], values[k + 3]});
      }
      return;
    }
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t at = place.At(k);
      if (at == place.values) continue;
      in.next.Store(index + at, NextResidual<kFeedback>(in, wholes[k], values[k]));
      sent.Store(first + at, values[k]);
    }
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_ENCODE_SCALED_H_
