#ifndef ATOLL_CORE_SCALED_BLOCKS_H_
#define ATOLL_CORE_SCALED_BLOCKS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "common/instruction_set.h"
#include "common/status.h"
#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/float_bits.h"

namespace atl {

/// What int8, int4 and e3m0 have in common: blocks of 256 values, each block a float32 scale and so many bits
/// per value. Format:
///
///   static constexpr CodecKind kKind;
///   static constexpr unsigned kBits;              // 8 or 4
///   static float Scale(float largest);            // of a block with this largest magnitude, NaN kept
///   explicit Format(float scale);                 // above 0
///   uint32_t Code(float value) const;             // kBits bits
///   static float Value(uint32_t code);            // decoded is Value(code) * scale
///
/// Codes of 4 bits: of a block with m values, byte j holds value j in its lower half and value j + ceil(m /
/// 2) in its upper half, so that a vector of bytes becomes two vectors of neighbouring values.
template <typename Format>
struct ScaledBlocks {
  static constexpr bool kNibbles = Format::kBits == 4;

  static constexpr uint64_t CodeBytes(uint64_t values) { return kNibbles ? (values + 1) / 2 : values; }
  static constexpr uint64_t kBlockBytes = kScaleBytes + CodeBytes(kScaledBlock);

  /// Largest magnitude, or NaN when a value is not finite: the order of bit patterns is the order of
  /// magnitudes, and infinity and NaN stand above all numbers.
  ATOLL_KERNEL float LargestMagnitude(const float* in, size_t n) {
    int32_t largest = 0;
    for (size_t i = 0; i < n; ++i) {
      const auto magnitude = static_cast<int32_t>(std::bit_cast<uint32_t>(in[i]) & 0x7fffffffu);
      largest = largest < magnitude ? magnitude : largest;
    }
    return largest < kFloatInfinityBits ? std::bit_cast<float>(largest)
                                        : std::numeric_limits<float>::quiet_NaN();
  }

  ATOLL_KERNEL void EncodeBlock(const float* __restrict in, size_t n, std::byte* __restrict out) {
    const float scale = Format::Scale(LargestMagnitude(in, n));
    std::memcpy(out, &scale, kScaleBytes);
    auto* __restrict codes = reinterpret_cast<uint8_t*>(out + kScaleBytes);
    if (!(scale > 0)) {  // all zero, too small for a scale, or NaN
      std::memset(codes, 0, CodeBytes(n));
      return;
    }
    const Format format(scale);
    if constexpr (kNibbles) {
      const size_t half = (n + 1) / 2;
      for (size_t j = 0; j < n - half; ++j) {
        codes[j] = static_cast<uint8_t>(format.Code(in[j]) | format.Code(in[half + j]) << 4);
      }
      if (n % 2 == 1) codes[half - 1] = static_cast<uint8_t>(format.Code(in[half - 1]));
    } else {
      for (size_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(format.Code(in[i]));
    }
  }

  struct Encode {
    ATOLL_KERNEL void Run(const float* in, uint64_t n, std::byte* out) {
      for (; n >= kScaledBlock; n -= kScaledBlock, in += kScaledBlock, out += kBlockBytes) {
        EncodeBlock(in, kScaledBlock, out);
      }
      if (n > 0) EncodeBlock(in, n, out);
    }
  };

  /// The first n values of a block of `values`; kAdd: out[i] += weight * value, else out[i] = value.
  template <bool kAdd>
  ATOLL_KERNEL void DecodeBlock(const std::byte* __restrict in, size_t values, size_t n, float weight,
                                float* __restrict out) {
    float scale;
    std::memcpy(&scale, in, kScaleBytes);
    const auto* __restrict codes = reinterpret_cast<const uint8_t*>(in + kScaleBytes);
    const size_t lower = kNibbles ? std::min(n, (values + 1) / 2) : n;
    for (size_t j = 0; j < lower; ++j) {
      const float value = Format::Value(kNibbles ? codes[j] & 15u : codes[j]) * scale;
      out[j] = kAdd ? out[j] + weight * value : value;
    }
    float* __restrict const upper = out + lower;
    for (size_t j = 0; j < n - lower; ++j) {
      const float value = Format::Value(codes[j] >> 4u) * scale;
      upper[j] = kAdd ? upper[j] + weight * value : value;
    }
  }

  /// The first n of the `values` values that the blocks from `in` on hold.
  template <bool kAdd>
  struct Decode {
    ATOLL_KERNEL void Run(const std::byte* in, uint64_t values, uint64_t n, float weight, float* out) {
      for (; n >= kScaledBlock; n -= kScaledBlock, values -= kScaledBlock) {
        DecodeBlock<kAdd>(in, kScaledBlock, kScaledBlock, weight, out);
        in += kBlockBytes;
        out += kScaledBlock;
      }
      if (n > 0) DecodeBlock<kAdd>(in, std::min(values, kScaledBlock), n, weight, out);
    }
  };
};

template <typename Format>
class ScaledBlockCodec final : public Codec {
 public:
  CodecKind kind() const override { return Format::kKind; }
  uint64_t block_elements() const override { return kScaledBlock; }

  uint64_t EncodedSize(uint64_t elements) const override {
    return elements / kScaledBlock * Blocks::kBlockBytes +
           (elements % kScaledBlock > 0 ? kScaleBytes + Blocks::CodeBytes(elements % kScaledBlock) : 0);
  }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    RunKernel<typename Blocks::Encode>(in.data(), uint64_t{in.size()}, out.data());
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    ATOLL_RETURN_IF_ERROR(CheckPayloadSize(*this, payload, elements));
    for (uint64_t offset = 0; offset < payload.size(); offset += Blocks::kBlockBytes) {
      uint32_t bits;
      std::memcpy(&bits, payload.data() + offset, kScaleBytes);
      // One comparison refuses infinity, NaN and, through the sign bit, everything negative.
      if (bits < static_cast<uint32_t>(kFloatInfinityBits)) continue;
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s payload: the scale of block %d (values from %d on) is %g; it must be finite and not negative",
          std::string(CodecName(kind())), offset / Blocks::kBlockBytes,
          offset / Blocks::kBlockBytes * kScaledBlock, std::bit_cast<float>(bits)));
    }
    if (Blocks::kNibbles && elements % 2 == 1 && (payload.back() >> 4) != std::byte{0}) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s payload: the unused half of the last byte is not zero", std::string(CodecName(kind()))));
    }
    return absl::OkStatus();
  }

  void DecodeRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                   std::span<float> out) const override {
    RunKernel<typename Blocks::template Decode<false>>(BlockAt(payload, first), elements - first,
                                                       uint64_t{out.size()}, 0.0f, out.data());
  }

  void AccumulateRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first, float weight,
                       std::span<float> acc) const override {
    RunKernel<typename Blocks::template Decode<true>>(BlockAt(payload, first), elements - first,
                                                      uint64_t{acc.size()}, weight, acc.data());
  }

 private:
  using Blocks = ScaledBlocks<Format>;

  static const std::byte* BlockAt(std::span<const std::byte> payload, uint64_t first) {
    return payload.data() + first / kScaledBlock * Blocks::kBlockBytes;
  }
};

}  // namespace atl

#endif  // ATOLL_CORE_SCALED_BLOCKS_H_
