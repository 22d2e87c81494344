#include <cstring>

#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/float_bits.h"

namespace atoll {
namespace {

/// fp16 and bf16: two bytes per value, no structure.
template <CodecKind kKind, uint16_t (*kToHalf)(float), float (*kToFloat)(uint16_t)>
class Half final : public Codec {
 public:
  CodecKind kind() const override { return kKind; }
  uint64_t block_elements() const override { return kPlainBlock; }
  uint64_t EncodedSize(uint64_t elements) const override { return elements * kHalfBytes; }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    const float* source = in.data();
    std::byte* target = out.data();
    const size_t n = in.size();
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const uint16_t half = kToHalf(source[i]);
      std::memcpy(target + i * kHalfBytes, &half, kHalfBytes);
    }
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    return CheckPayloadSize(*this, payload, elements);
  }

  void DecodeRange(std::span<const std::byte> payload, uint64_t, uint64_t first,
                   std::span<float> out) const override {
    const std::byte* source = payload.data() + first * kHalfBytes;
    float* target = out.data();
    const size_t n = out.size();
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, source + i * kHalfBytes, kHalfBytes);
      target[i] = kToFloat(half);
    }
  }
};

}  // namespace

const Codec& Fp16Codec() {
  static const Half<CodecKind::kFp16, Fp16FromFloat, FloatFromFp16> codec;
  return codec;
}

const Codec& Bf16Codec() {
  static const Half<CodecKind::kBf16, Bf16FromFloat, FloatFromBf16> codec;
  return codec;
}

}  // namespace atoll
