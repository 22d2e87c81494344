// What is particular to the sparse codecs: which values are held, how their places are packed, what a foreign
// payload may not do, how two bits stand for them.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/position_coding.h"
#include "core/sparse_codec.h"
#include "core/topk_select.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

using testing::HasSubstr;

/// By sorting: the largest magnitudes, of equal ones the first.
std::vector<uint16_t> ReferenceLargest(const std::vector<float>& values, size_t k) {
  std::vector<uint16_t> order(values.size());
  std::iota(order.begin(), order.end(), uint16_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](uint16_t a, uint16_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(k);
  std::ranges::sort(order);
  return order;
}

std::vector<uint16_t> Largest(const std::vector<float>& values, size_t k) {
  std::vector<uint16_t> positions(k);
  SelectLargest(values, positions);
  return positions;
}

TEST(SelectLargest, IsWhatSortingFinds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const size_t n : {1, 2, 100, 4095, 4096}) {
      for (const size_t k : {size_t{1}, size_t{64}, size_t{128}, n}) {
        if (k > n) continue;
        std::vector<float> values = RandomValues(n, seed);
        if (seed % 4 == 1) std::ranges::for_each(values, [](float& v) { v = std::round(v * 2000); });  // ties
        if (seed % 4 == 2) std::ranges::fill(values, seed % 8 == 2 ? 0.0f : -3.0f);
        if (seed % 4 == 3) std::ranges::for_each(values, [](float& v) { v *= 0x1p-130f; });
        ASSERT_EQ(Largest(values, k), ReferenceLargest(values, k))
            << "seed " << seed << ", " << k << " of " << n;
      }
    }
  }
}

TEST(SelectLargest, TakesWhatIsNotFiniteFirst) {
  std::vector<float> values = RandomValues(4096, 1, 1e30f);
  values[4000] = std::numeric_limits<float>::quiet_NaN();
  values[17] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Largest(values, 2), (std::vector<uint16_t>{17, 4000}));
}

TEST(PositionCoding, GivesBackWhatItPacked) {
  std::mt19937 engine(1);
  for (const PositionCoding coding :
       {PositionCoding{4096, 64, 6}, PositionCoding{4096, 128, 5}, PositionCoding{1, 1, 6},
        PositionCoding{65, 2, 6}, PositionCoding{4095, 64, 6}, PositionCoding{3000, 94, 5}}) {
    for (int trial = 0; trial < 50; ++trial) {
      std::vector<uint16_t> all(coding.values);
      std::iota(all.begin(), all.end(), uint16_t{0});
      if (trial > 1) std::ranges::shuffle(all, engine);
      if (trial == 1) std::ranges::reverse(all);
      std::vector<uint16_t> positions(all.begin(), all.begin() + coding.held);
      std::ranges::sort(positions);
      std::vector<std::byte> packed(coding.bytes());
      PackPositions(coding, positions.data(), packed.data());
      ASSERT_EQ(CheckPositions(coding, packed.data()), nullptr);
      std::vector<uint16_t> unpacked(coding.held);
      ASSERT_EQ(UnpackPositions(coding, packed.data(), unpacked.data()), coding.held);
      ASSERT_EQ(unpacked, positions);
    }
  }
}

TEST(PositionCoding, TakesEightAndSevenBits) {
  EXPECT_EQ((PositionCoding{4096, 64, 6}.bytes()), 64u);
  EXPECT_EQ((PositionCoding{4096, 128, 5}.bytes()), 112u);
}

TEST(PositionCoding, SaysWhatIsWrongWithForeignBytes) {
  const PositionCoding coding{64 + 2, 2, 6};  // 4 bits of bitmap in a byte, 12 bits of lower halves in two
  const auto check = [&](uint8_t upper, uint8_t low0, uint8_t low1) -> std::string {
    const std::byte bytes[3] = {std::byte{upper}, std::byte{low0}, std::byte{low1}};
    const char* problem = CheckPositions(coding, bytes);
    return problem == nullptr ? "" : problem;
  };
  ASSERT_EQ(coding.bytes(), 3u);
  EXPECT_EQ(check(0b0011, 0b01000000, 0), "");  // 0 and 1
  EXPECT_EQ(check(0b0101, 0, 0), "");           // 0 and 64
  EXPECT_THAT(check(0b0001, 0, 0), HasSubstr("does not have one bit per stored value"));
  EXPECT_THAT(check(0b0111, 0, 0), HasSubstr("does not have one bit per stored value"));
  EXPECT_THAT(check(0b0011, 0, 0), HasSubstr("do not ascend"));              // 0 and 0
  EXPECT_THAT(check(0b0011, 0b00000010, 0), HasSubstr("do not ascend"));     // 2 and 0
  EXPECT_THAT(check(0b0101, 0b10000000, 0), HasSubstr("beyond the block"));  // 0 and 66
  EXPECT_THAT(check(0b1001, 0, 0), HasSubstr("beyond the block"));           // 0 and 128
  EXPECT_THAT(check(0b10000001, 0, 0), HasSubstr("beyond the block"));
  EXPECT_THAT(check(0b0101, 0, 0b00010000), HasSubstr("unused bits"));
}

class TopK : public testing::TestWithParam<CodecKind> {
 protected:
  const Codec& codec_ = CodecFor(GetParam());
  const size_t k_ =
      GetParam() == CodecKind::kTopK64 || GetParam() == CodecKind::kTopK64Bf16 ? size_t{64} : size_t{128};
  const bool two_bits_ = GetParam() == CodecKind::kTopK64 || GetParam() == CodecKind::kTopK128;
};
INSTANTIATE_TEST_SUITE_P(All, TopK,
                         testing::Values(CodecKind::kTopK64, CodecKind::kTopK128, CodecKind::kTopK64Bf16,
                                         CodecKind::kTopK128Bf16),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

TEST_P(TopK, HoldsTheLargestOfEachBlockAndNoOther) {
  constexpr size_t kElements = 2 * 4096 + 1000;
  const std::vector<float> in = RandomValues(kElements, 1);
  const std::vector<float> out = Decoded(codec_, Encoded(codec_, in), kElements);
  for (size_t first = 0; first < kElements; first += 4096) {
    const std::vector<float> block(in.begin() + first, in.begin() + std::min(first + 4096, kElements));
    const size_t held = (k_ * block.size() + 4095) / 4096;
    const std::vector<uint16_t> expected = ReferenceLargest(block, held);
    std::vector<uint16_t> found;
    for (size_t i = 0; i < block.size(); ++i) {
      if (out[first + i] == 0) continue;
      found.push_back(static_cast<uint16_t>(i));
      EXPECT_EQ(std::signbit(out[first + i]), std::signbit(block[i]));
      if (two_bits_) continue;
      EXPECT_NEAR(out[first + i], block[i], 0x1p-8 * std::abs(block[i]));
    }
    EXPECT_EQ(found, expected);
  }
}

TEST_P(TopK, BitsPerParameter) {
  constexpr uint64_t kValues = 4'096'000;  // a thousand blocks
  const double bits = static_cast<double>(codec_.EncodedSize(kValues)) * 8 / kValues;
  const double expected = k_ == 64 ? (two_bits_ ? 704 : 1536) / 4096.0 : (two_bits_ ? 1216 : 2944) / 4096.0;
  EXPECT_DOUBLE_EQ(bits, expected);
}

TEST_P(TopK, FewerNonZerosThanRoomKeepTheirPlaces) {
  std::vector<float> in(4096);
  in[5] = 1;
  in[4000] = -3;
  const std::vector<float> out = Decoded(codec_, Encoded(codec_, in), 4096);
  std::vector<float> expected(4096);
  expected[5] = two_bits_ ? 2.0f : 1.0f;  // one level is the zeros'
  expected[4000] = two_bits_ ? -2.0f : -3.0f;
  EXPECT_EQ(out, expected);
}

TEST_P(TopK, ChecksEveryBlock) {
  constexpr size_t kTwoBlocks = 2 * size_t{4096};
  const size_t second = codec_.EncodedSize(4096);
  std::vector<std::byte> payload = Encoded(codec_, RandomValues(kTwoBlocks, 1));
  payload[second] = static_cast<std::byte>(~payload[second]);
  const absl::Status status = codec_.Validate(payload, kTwoBlocks);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("block 1 (values from 4096 on): the "));
}

TEST(TwoBitTopK, LevelsAreTheMeansOfTwoGroups) {
  const Codec& codec = CodecFor(CodecKind::kTopK64);
  std::vector<float> in(4096, 0.001f);
  for (size_t i = 0; i < 64; ++i) in[i * 64] = (i % 2 == 0 ? 1.0f : -1.0f) * (i < 16 ? 8.0f : 2.0f);
  in[0] = 10;
  in[64] = -6;
  const std::vector<float> out = Decoded(codec, Encoded(codec, in), 4096);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i * 64], (i % 2 == 0 ? 1.0f : -1.0f) * (i < 16 ? 8.0f : 2.0f)) << i;
  }
}

TEST(TwoBitTopK, RejectsLevelsThatAreNone) {
  const Codec& codec = CodecFor(CodecKind::kTopK64);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  using Levels = std::pair<float, float>;
  for (const auto& [low, high] :
       {Levels{2, 1}, Levels{-1, 1}, Levels{-0.0f, 1}, Levels{1, inf}, Levels{nan, nan}}) {
    std::vector<std::byte> payload = Encoded(codec, RandomValues(4096, 4));
    std::memcpy(payload.data() + 64, &low, 4);
    std::memcpy(payload.data() + 68, &high, 4);
    EXPECT_FALSE(codec.Validate(payload, 4096).ok()) << low << " " << high;
  }
}

TEST(Int8Quantile, HoldsTheMeanOfEachBin) {
  constexpr size_t kElements = 65536 + 3000;
  const Codec& codec = CodecFor(CodecKind::kInt8Quantile);
  std::mt19937 engine(1);
  std::normal_distribution<float> normal(0, 0.01f);
  std::vector<float> in(kElements);
  for (float& value : in) value = normal(engine);
  const std::vector<float> out = Decoded(codec, Encoded(codec, in), kElements);
  double error = 0;
  double all = 0;
  for (size_t i = 0; i < kElements; ++i) {
    // A bin is 6/256 of a deviation wide; beyond 3 deviations the outermost two have the rest.
    const bool inner = std::abs(in[i]) < 0.029f;
    ASSERT_NEAR(out[i], in[i], inner ? 0.01 * 6 / 256 * 1.05 : 0.03) << i;
    error += std::pow(double{out[i]} - in[i], 2);
    all += std::pow(double{in[i]}, 2);
  }
  EXPECT_LT(std::sqrt(error / all), 0.02);
}

TEST(Int8Quantile, RejectsACodebookThatIsNone) {
  const Codec& codec = CodecFor(CodecKind::kInt8Quantile);
  for (const auto& [code, value] : {std::pair{3, std::numeric_limits<float>::infinity()},
                                    std::pair{255, std::numeric_limits<float>::quiet_NaN()},
                                    std::pair{128, 1e-9f}, std::pair{128, -0.0f}}) {
    std::vector<std::byte> payload = Encoded(codec, RandomValues(70000, 4));
    std::memcpy(payload.data() + 1024 + 65536 + ptrdiff_t{code} * 4, &value, 4);
    const absl::Status status = codec.Validate(payload, 70000);
    EXPECT_THAT(std::string(status.message()), HasSubstr("of the section from value 65536 on")) << code;
  }
}

}  // namespace
}  // namespace atl
