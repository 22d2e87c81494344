#ifndef ATOLL_CORE_FLOAT_BITS_H_
#define ATOLL_CORE_FLOAT_BITS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

// Conversions between float32 and the 16-bit formats, in integer arithmetic and without branches: the same
// bits with or without F16C or AVX-512 BF16, and loops over them vectorise on every instruction set.
// constexpr, so that nvcc compiles them for a GPU as well (worker/cuda).

namespace atl {

inline constexpr int32_t kFloatInfinityBits = 0x7f800000;

/// Float32 to IEEE binary16, round to nearest even; finite values beyond +-65504 saturate, infinity and NaN
/// stay.
constexpr uint16_t Fp16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
  // Rebias the exponent (127 - 15 = 112) and round away 13 mantissa bits; a carry moves into the exponent as
  // it should.
  const int32_t normal = (magnitude - (112 << 23) + 0x0fff + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14 the result is subnormal with unit 2^-24: adding 0.5, whose unit is the same, lets the adder
  // round.
  const int32_t subnormal =
      std::bit_cast<int32_t>(std::bit_cast<float>(std::min(magnitude, 0x38800000)) + 0.5f) - 0x3f000000;
  const int32_t finite = magnitude < 0x38800000 ? subnormal : std::min(normal, 0x7bff);
  const int32_t special = magnitude > kFloatInfinityBits ? 0x7e00 : 0x7c00;
  const int32_t half = magnitude >= kFloatInfinityBits ? special : finite;
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | static_cast<uint32_t>(half));
}

constexpr float FloatFromFp16(uint16_t half) {
  const int32_t magnitude = half & 0x7fff;
  const int32_t normal = (magnitude << 13) + (112 << 23);
  const int32_t special = (magnitude << 13) | kFloatInfinityBits;
  const auto subnormal = std::bit_cast<int32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const int32_t finite = magnitude < 0x0400 ? subnormal : normal;
  const int32_t bits = magnitude >= 0x7c00 ? special : finite;
  return std::bit_cast<float>(static_cast<uint32_t>(bits) | (static_cast<uint32_t>(half & 0x8000) << 16));
}

/// Float32 to bfloat16, round to nearest even; finite values that would round to infinity saturate, NaN stays
/// NaN.
constexpr uint16_t Bf16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
  const int32_t rounded = (std::min(magnitude, kFloatInfinityBits) + 0x7fff + ((magnitude >> 16) & 1)) >> 16;
  const int32_t finite = std::min(rounded, 0x7f7f);
  const int32_t special = magnitude > kFloatInfinityBits ? 0x7fc0 : 0x7f80;
  const int32_t brief = magnitude >= kFloatInfinityBits ? special : finite;
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | static_cast<uint32_t>(brief));
}

constexpr float FloatFromBf16(uint16_t brief) {
  return std::bit_cast<float>(static_cast<uint32_t>(brief) << 16);
}

constexpr bool IsFiniteBits(float value) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(value) & 0x7fffffffu) < kFloatInfinityBits;
}

}  // namespace atl

#endif  // ATOLL_CORE_FLOAT_BITS_H_
