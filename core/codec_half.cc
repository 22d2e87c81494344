#include <cstring>

#include "common/instruction_set.h"
#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/float_bits.h"

namespace atl {
namespace {

/// Format: FromFloat, ToFloat.
template <typename Format>
struct EncodeHalves {
  ATOLL_KERNEL void Run(const float* __restrict source, size_t n, std::byte* __restrict target) {
    for (size_t i = 0; i < n; ++i) {
      const uint16_t half = Format::FromFloat(source[i]);
      std::memcpy(target + i * kHalfBytes, &half, kHalfBytes);
    }
  }
};

/// kAdd: target[i] += weight * value, else target[i] = value.
template <typename Format, bool kAdd>
struct DecodeHalves {
  ATOLL_KERNEL void Run(const std::byte* __restrict source, float weight, size_t n,
                        float* __restrict target) {
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, source + i * kHalfBytes, kHalfBytes);
      const float value = Format::ToFloat(half);
      target[i] = kAdd ? target[i] + weight * value : value;
    }
  }
};

/// fp16 and bf16: two bytes per value, no structure.
template <typename Format>
class Half final : public Codec {
 public:
  CodecKind kind() const override { return Format::kKind; }
  uint64_t block_elements() const override { return kPlainBlock; }
  uint64_t EncodedSize(uint64_t elements) const override { return elements * kHalfBytes; }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    RunKernel<EncodeHalves<Format>>(in.data(), in.size(), out.data());
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    return CheckPayloadSize(*this, payload, elements);
  }

  void DecodeRange(std::span<const std::byte> payload, uint64_t, uint64_t first,
                   std::span<float> out) const override {
    RunKernel<DecodeHalves<Format, false>>(payload.data() + first * kHalfBytes, 0.0f, out.size(), out.data());
  }

  void AccumulateRange(std::span<const std::byte> payload, uint64_t, uint64_t first, float weight,
                       std::span<float> acc) const override {
    RunKernel<DecodeHalves<Format, true>>(payload.data() + first * kHalfBytes, weight, acc.size(),
                                          acc.data());
  }
};

struct Fp16 {
  static constexpr CodecKind kKind = CodecKind::kFp16;
  ATOLL_KERNEL uint16_t FromFloat(float value) { return Fp16FromFloat(value); }
  ATOLL_KERNEL float ToFloat(uint16_t half) { return FloatFromFp16(half); }
};

struct Bf16 {
  static constexpr CodecKind kKind = CodecKind::kBf16;
  ATOLL_KERNEL uint16_t FromFloat(float value) { return Bf16FromFloat(value); }
  ATOLL_KERNEL float ToFloat(uint16_t half) { return FloatFromBf16(half); }
};

}  // namespace

const Codec& Fp16Codec() {
  static const Half<Fp16> codec;
  return codec;
}

const Codec& Bf16Codec() {
  static const Half<Bf16> codec;
  return codec;
}

}  // namespace atl
