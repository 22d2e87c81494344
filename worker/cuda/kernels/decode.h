#ifndef ATOLL_WORKER_CUDA_KERNELS_DECODE_H_
#define ATOLL_WORKER_CUDA_KERNELS_DECODE_H_

#include <algorithm>
#include <cstdint>

#include "core/topk_format.h"
#include "worker/cuda/device.h"
#include "worker/cuda/kernels/encode_plain.h"
#include "worker/cuda/kernels/encode_scaled.h"
#include "worker/cuda/kernels/push.h"
#include "worker/cuda/kernels/topk_block.h"

// Decode-and-add for delta pulls: values += decode(payload), as ApplyDelta (core/delta.h). The host validates
// the payload.

namespace atl::device {

/// values begins at a multiple of 16 bytes, the payload too. A launch has one block of threads for each
/// kChunk values.
struct PullArguments {
  GlobalSpan<const uint8_t> payload;
  GlobalSpan<float> values;
  uint64_t elements = 0;
};

ATOLL_DEVICE void AddFour(const PullArguments& in, uint64_t index, const float* decoded) {
  Four values = in.values.LoadAs<Four>(index);
  ATOLL_UNROLL
  for (uint32_t k = 0; k < 4; ++k) values.at[k] += decoded[k];
  in.values.StoreAs<Four>(index, values);
}

ATOLL_DEVICE void AddOne(const PullArguments& in, uint64_t index, float decoded) {
  in.values.Store(index, in.values.Load(index) + decoded);
}

template <typename Format>
struct AddPlain {
  static constexpr const char* kName = "add_plain";
  using Arguments = PullArguments;
  using Code = typename Format::Code;

  ATOLL_DEVICE static void Run(const PullArguments& in) {
    const ChunkRange chunk = ChunkOf(in.elements);
    for (uint32_t at = 4 * ThreadIndex(); at < chunk.count; at += 4 * BlockThreads()) {
      const uint64_t index = chunk.first + at;
      if (at + 4 > chunk.count) {
        for (uint64_t i = index; i < chunk.first + chunk.count; ++i) {
          AddOne(in, i, Format::Decode(in.payload.LoadAs<Code>(i * sizeof(Code))));
        }
        continue;
      }
      const auto codes = in.payload.LoadAs<typename Format::FourCodes>(index * sizeof(Code));
      float decoded[4];
      ATOLL_UNROLL
      for (uint32_t k = 0; k < 4; ++k) decoded[k] = Format::Decode(Format::Split(codes, k));
      AddFour(in, index, decoded);
    }
  }
};

template <typename Format>
struct AddScaledBlocks {
  static constexpr const char* kName = "add_scaled";
  using Arguments = PullArguments;
  using Place = BlockPlace<Format::kBits>;

  ATOLL_DEVICE static void Run(const PullArguments& in) {
    const ChunkRange chunk = ChunkOf(in.elements);
    const uint32_t warps = BlockThreads() / kWarp;
    for (uint32_t first = ThreadIndex() / kWarp * Place::kBlock; first < chunk.count;
         first += warps * Place::kBlock) {
      const uint32_t values = std::min(uint32_t{Place::kBlock}, chunk.count - first);
      AddBlock(in, {values, ThreadIndex() % kWarp}, chunk.first + first);
    }
  }

 private:
  ATOLL_DEVICE static void AddBlock(const PullArguments& in, Place place, uint64_t index) {
    const uint64_t block = index / Place::kBlock * Place::kBlockBytes;
    float scale = 0;
    if (place.lane == 0) scale = in.payload.LoadAs<float>(block);
    scale = ShuffleFrom(scale, 0);
    if (place.whole()) {
      AddWhole(in, place, index, block + kScaleBytes, scale);
      return;
    }
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t at = place.At(k);
      if (at == place.values) continue;
      const uint32_t byte =
          in.payload.Load(block + kScaleBytes + (Place::kNibbles && k >= 4 ? at - place.half() : at));
      AddOne(in, index + at,
             Format::Value(Place::kNibbles ? (k < 4 ? byte & 15u : byte >> 4) : byte) * scale);
    }
  }

  ATOLL_DEVICE static void AddWhole(const PullArguments& in, Place place, uint64_t index, uint64_t codes,
                                    float scale) {
    const auto lower = in.payload.LoadAs<uint32_t>(codes + 4 * place.lane);
    const uint32_t upper =
        Place::kNibbles ? lower >> 4 : in.payload.LoadAs<uint32_t>(codes + Place::kHalf + 4 * place.lane);
    constexpr uint32_t kMask = (1u << Format::kBits) - 1;
    float decoded[8];
    ATOLL_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      decoded[k] = Format::Value(lower >> (8 * k) & kMask) * scale;
      decoded[4 + k] = Format::Value(upper >> (8 * k) & kMask) * scale;
    }
    AddFour(in, index + 4 * place.lane, decoded);
    AddFour(in, index + Place::kHalf + 4 * place.lane, decoded + 4);
  }
};

template <uint32_t kLargest, bool kTwoBits>
struct AddTopK {
  static constexpr const char* kName = "add_topk";
  using Arguments = PullArguments;
  using Format = TopKBlock<kLargest, kTwoBits>;

  ATOLL_DEVICE static void Run(const PullArguments& in) {
    ATOLL_SHARED(ChunkValues, decoded);
    ATOLL_SHARED(typename Format::Words, words);
    const ChunkRange chunk = ChunkOf(in.elements);
    const PositionCoding coding = TopKPositions(kLargest, chunk.count);
    LoadWords(in, chunk, Format::Bytes(coding), words);
    for (uint32_t i = ThreadIndex(); i < kChunk; i += BlockThreads()) decoded.Store(i, 0);
    Barrier();
    const auto bitmap = 8 * static_cast<uint32_t>(coding.upper_bytes());
    for (uint32_t bit = ThreadIndex(); bit < bitmap; bit += BlockThreads()) {
      if (Format::Bits(words, bit, 1) == 0) continue;
      DecodeHeld(coding, bit, words, decoded);
    }
    Barrier();
    // Absent values are added as zeros: that makes a negative zero positive, as on the processor.
    for (uint32_t at = 4 * ThreadIndex(); at < chunk.count; at += 4 * BlockThreads()) {
      if (at + 4 <= chunk.count) {
        const Four four = decoded.template LoadAs<Four>(at);
        AddFour(in, chunk.first + at, four.at);
      } else {
        for (uint32_t i = at; i < chunk.count; ++i) AddOne(in, chunk.first + i, decoded.Load(i));
      }
    }
  }

 private:
  /// The held value of this bit of the bitmap: as many as there are bits below it come before.
  ATOLL_DEVICE static void DecodeHeld(const PositionCoding& coding, uint32_t bit,
                                      const typename Format::Words& words, ChunkValues& decoded) {
    uint32_t index = CountBits(words.Load(bit / 32) & ((1u << (bit % 32)) - 1));
    for (uint32_t word = 0; word < bit / 32; ++word) index += CountBits(words.Load(word));
    const uint32_t lower = 8 * static_cast<uint32_t>(coding.upper_bytes()) + index * coding.low_bits;
    const uint32_t position = (bit - index) << coding.low_bits | Format::Bits(words, lower, coding.low_bits);
    const auto values = 8 * static_cast<uint32_t>(coding.bytes());
    if constexpr (!kTwoBits) {
      decoded.Store(position,
                    FloatFromBf16(static_cast<uint16_t>(Format::Bits(words, values + 16 * index, 16))));
      return;
    }
    const uint32_t code = Format::Bits(words, values + Format::kLevelBits + 2 * index, 2);
    const uint32_t level = Format::Bits(words, values + ((code & kTopKUpperBit) != 0 ? 32 : 0), 32);
    const auto magnitude = std::bit_cast<float>(level);
    decoded.Store(position, (code & kTopKSignBit) != 0 ? -magnitude : magnitude);
  }

  /// The words of a chunk's block; bits behind the payload are zeros.
  ATOLL_DEVICE static void LoadWords(const PullArguments& in, ChunkRange chunk, uint32_t bytes,
                                     typename Format::Words& words) {
    const uint64_t from = chunk.first / kChunk * Format::kWholeBytes;
    for (uint32_t i = ThreadIndex(); i < Format::kWords; i += BlockThreads()) {
      uint32_t word = 0;
      if (4 * i + 4 <= bytes) {
        word = in.payload.LoadAs<uint32_t>(from + uint64_t{4} * i);
      } else {
        for (uint32_t b = 4 * i; b < bytes; ++b) word |= uint32_t{in.payload.Load(from + b)} << (b % 4 * 8);
      }
      words.Store(i, word);
    }
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_DECODE_H_
