#include "core/float_bits.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace atl {
namespace {

/// By exhaustive search of the neighbours: what "round to nearest, ties to even" means, independent of how it
/// is done.
template <typename ToFloat>
void ExpectNearestEven(float value, uint16_t result, ToFloat to_float, uint16_t largest) {
  const auto magnitude = static_cast<uint16_t>(result & 0x7fff);
  ASSERT_EQ(std::signbit(value), (result & 0x8000) != 0) << value;
  const double target = std::abs(double{value});
  const double error = std::abs(target - to_float(magnitude));
  for (const int step : {-1, 1}) {
    const int neighbour = magnitude + step;
    if (neighbour < 0 || neighbour > largest) continue;
    const double other = std::abs(target - to_float(static_cast<uint16_t>(neighbour)));
    ASSERT_LE(error, other) << value;
    // Far beyond the largest value the errors differ by less than a float64 can tell.
    if (error == other && magnitude != largest) {
      ASSERT_EQ(magnitude & 1, 0) << value;
    }
  }
}

TEST(FloatBits, EveryHalfSurvives) {
  for (uint32_t h = 0; h <= 0xffff; ++h) {
    const auto half = static_cast<uint16_t>(h);
    const float fp16 = FloatFromFp16(half);
    const float bf16 = FloatFromBf16(half);
    if (!std::isnan(fp16)) {
      ASSERT_EQ(Fp16FromFloat(fp16), half);
    }
    if (!std::isnan(bf16)) {
      ASSERT_EQ(Bf16FromFloat(bf16), half);
    }
    ASSERT_EQ(std::isnan(fp16), (half & 0x7fff) > 0x7c00);
    ASSERT_EQ(std::isnan(bf16), (half & 0x7fff) > 0x7f80);
  }
}

TEST(FloatBits, Fp16OfAllMagnitudesRoundsToNearestEven) {
  std::mt19937 engine(1);
  for (int i = 0; i < 1000000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    if (!std::isfinite(value)) continue;
    ExpectNearestEven(value, Fp16FromFloat(value), FloatFromFp16, 0x7bff);
    ExpectNearestEven(value, Bf16FromFloat(value), FloatFromBf16, 0x7f7f);
  }
}

TEST(FloatBits, Fp16TiesGoToEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float low = FloatFromFp16(static_cast<uint16_t>(h));
    const float high = FloatFromFp16(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;  // exact in float32
    ASSERT_EQ(Fp16FromFloat(middle), (h & 1) == 0 ? h : h + 1);
    ASSERT_EQ(Fp16FromFloat(-middle), 0x8000 | ((h & 1) == 0 ? h : h + 1));
    ASSERT_EQ(Fp16FromFloat(std::nextafter(middle, 0.0f)), h);
    ASSERT_EQ(Fp16FromFloat(std::nextafter(middle, 1e9f)), h + 1);
  }
}

TEST(FloatBits, SpecialValuesStaySpecial) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Fp16FromFloat(kInfinity), 0x7c00);
  EXPECT_EQ(Fp16FromFloat(-kInfinity), 0xfc00);
  EXPECT_EQ(Bf16FromFloat(kInfinity), 0x7f80);
  EXPECT_EQ(Bf16FromFloat(-kInfinity), 0xff80);
  // A NaN whose payload sits only in the bits that are dropped must not become infinity.
  EXPECT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(FloatFromFp16(Fp16FromFloat(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_FALSE(IsFiniteBits(-kInfinity));
  EXPECT_TRUE(IsFiniteBits(-std::numeric_limits<float>::max()));
}

}  // namespace
}  // namespace atl
