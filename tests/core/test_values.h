#ifndef ATOLL_TESTS_CORE_TEST_VALUES_H_
#define ATOLL_TESTS_CORE_TEST_VALUES_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/codec.h"

namespace atl {

/// Values whose magnitudes spread over some orders, as those of pseudo-gradients do.
inline std::vector<float> RandomValues(size_t n, uint64_t seed, float scale = 1e-3f) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = scale * normal(engine) * std::exp2(normal(engine));
  return values;
}

inline std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> values) {
  std::vector<std::byte> payload(codec.EncodedSize(values.size()));
  codec.Encode(values, payload);
  return payload;
}

inline std::vector<float> Decoded(const Codec& codec, std::span<const std::byte> payload, size_t elements) {
  std::vector<float> values(elements);
  codec.DecodeRange(payload, elements, 0, values);
  return values;
}

/// Bit patterns: unlike values, they tell -0 from 0 and compare NaN.
inline std::vector<uint32_t> Bits(std::span<const float> values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

}  // namespace atl

#endif  // ATOLL_TESTS_CORE_TEST_VALUES_H_
