#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/float_bits.h"

namespace atoll {
namespace {

constexpr uint64_t kBlockBytes = kInt8ScaleBytes + kInt8Block;

/// Largest magnitude, or NaN when a value is not finite: the order of bit patterns is the order of
/// magnitudes, and infinity and NaN stand above all numbers.
float LargestMagnitude(const float* in, size_t n) {
  int32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    largest = std::max(largest, static_cast<int32_t>(std::bit_cast<uint32_t>(in[i]) & 0x7fffffffu));
  }
  return largest < kFloatInfinityBits ? std::bit_cast<float>(largest)
                                      : std::numeric_limits<float>::quiet_NaN();
}

void EncodeBlock(const float* in, size_t n, std::byte* out) {
  // Adding 1.5 * 2^23 leaves the integer nearest (ties to even) in the low bits of the sum.
  constexpr float kRounder = 12582912.0f;
  constexpr int32_t kRounderBits = 0x4b400000;
  static_assert(std::bit_cast<int32_t>(kRounder) == kRounderBits);

  const float scale = LargestMagnitude(in, n) / kInt8Levels;
  std::memcpy(out, &scale, kInt8ScaleBytes);
  auto* levels = reinterpret_cast<int8_t*>(out + kInt8ScaleBytes);
  if (!(scale > 0)) {  // all zero, too small for a scale, or NaN
    std::memset(levels, 0, n);
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    // A subnormal scale is so coarse that the quotient may leave the range.
    const float quotient = std::clamp(in[i] / scale, -kInt8Levels, kInt8Levels);
    levels[i] = static_cast<int8_t>(std::bit_cast<int32_t>(quotient + kRounder) - kRounderBits);
  }
}

void DecodeBlock(const std::byte* in, size_t n, float* out) {
  float scale;
  std::memcpy(&scale, in, kInt8ScaleBytes);
  const auto* levels = reinterpret_cast<const int8_t*>(in + kInt8ScaleBytes);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(levels[i]) * scale;
}

class Int8 final : public Codec {
 public:
  CodecKind kind() const override { return CodecKind::kInt8; }
  uint64_t block_elements() const override { return kInt8Block; }

  uint64_t EncodedSize(uint64_t elements) const override {
    return elements + (elements + kInt8Block - 1) / kInt8Block * kInt8ScaleBytes;
  }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    for (uint64_t first = 0; first < in.size(); first += kInt8Block) {
      const auto n = std::min<uint64_t>(kInt8Block, in.size() - first);
      EncodeBlock(in.data() + first, n, out.data() + first / kInt8Block * kBlockBytes);
    }
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    ATOLL_RETURN_IF_ERROR(CheckPayloadSize(*this, payload, elements));
    for (uint64_t offset = 0; offset < payload.size(); offset += kBlockBytes) {
      uint32_t bits;
      std::memcpy(&bits, payload.data() + offset, kInt8ScaleBytes);
      // One comparison refuses infinity, NaN and, through the sign bit, everything negative.
      if (bits >= static_cast<uint32_t>(kFloatInfinityBits)) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "int8 payload: the scale of block %d (values from %d on) is %g; it must be finite and not "
            "negative",
            offset / kBlockBytes, offset / kBlockBytes * kInt8Block, std::bit_cast<float>(bits)));
      }
    }
    return absl::OkStatus();
  }

  void DecodeRange(std::span<const std::byte> payload, uint64_t, uint64_t first,
                   std::span<float> out) const override {
    const std::byte* source = payload.data() + first / kInt8Block * kBlockBytes;
    for (uint64_t done = 0; done < out.size(); done += kInt8Block, source += kBlockBytes) {
      DecodeBlock(source, std::min<uint64_t>(kInt8Block, out.size() - done), out.data() + done);
    }
  }
};

}  // namespace

const Codec& Int8Codec() {
  static const Int8 codec;
  return codec;
}

}  // namespace atoll
