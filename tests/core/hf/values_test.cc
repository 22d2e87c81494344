#include "core/hf/values.h"

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

std::vector<uint16_t> Narrowed(const std::vector<float>& values, FileDtype dtype) {
  std::vector<uint16_t> halves(values.size());
  EXPECT_EQ(NarrowValues(values, dtype, std::as_writable_bytes(std::span(halves))), std::nullopt);
  return halves;
}

std::optional<uint64_t> Beyond(float value, FileDtype dtype) {
  const std::vector<float> values = {0, value};
  std::vector<uint16_t> halves(2);
  return NarrowValues(values, dtype, std::as_writable_bytes(std::span(halves)));
}

TEST(HfValues, NamesOfTypes) {
  for (const FileDtype dtype : {FileDtype::kF32, FileDtype::kF16, FileDtype::kBf16}) {
    EXPECT_THAT(FileDtypeOf(SafetensorsName(dtype)), Optional(dtype));
  }
  EXPECT_EQ(FileDtypeOf("F64"), std::nullopt);
  EXPECT_STREQ(TorchName(FileDtype::kBf16), "bfloat16");
}

TEST(HfValues, TiesGoToTheEvenOne) {
  // The halves are 1, 1 + 2^-10 and 1 + 2^-9; 1, 1 + 2^-7 and 1 + 2^-6.
  EXPECT_THAT(Narrowed({1 + 0x1p-11F, 1 + 0x3p-11F, 1 + 0x1.002p-11F}, FileDtype::kF16),
              ElementsAre(0x3c00, 0x3c02, 0x3c01));
  EXPECT_THAT(Narrowed({1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1.02p-8F}, FileDtype::kBf16),
              ElementsAre(0x3f80, 0x3f82, 0x3f81));
}

TEST(HfValues, AValueThatATypeCannotHoldIsFound) {
  EXPECT_EQ(Beyond(65519.996F, FileDtype::kF16), std::nullopt);
  EXPECT_THAT(Beyond(65520, FileDtype::kF16), Optional(1));
  EXPECT_THAT(Beyond(-1e6F, FileDtype::kF16), Optional(1));
  EXPECT_EQ(Beyond(0x1.fefffep127F, FileDtype::kBf16), std::nullopt);
  EXPECT_THAT(Beyond(0x1.ffp127F, FileDtype::kBf16), Optional(1));
  EXPECT_THAT(Beyond(std::numeric_limits<float>::max(), FileDtype::kBf16), Optional(1));
  EXPECT_EQ(Beyond(std::numeric_limits<float>::infinity(), FileDtype::kF16), std::nullopt);
}

TEST(HfValues, EveryHalfComesBack) {
  for (const FileDtype dtype : {FileDtype::kF16, FileDtype::kBf16}) {
    std::vector<uint16_t> halves;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const uint32_t exponent = dtype == FileDtype::kF16 ? 0x7c00 : 0x7f80;
      if ((bits & exponent) != exponent) halves.push_back(static_cast<uint16_t>(bits));
    }
    std::vector<float> values(halves.size());
    WidenValues(std::as_bytes(std::span(halves)), dtype, values);
    EXPECT_EQ(Narrowed(values, dtype), halves);
  }
}

TEST(HfValues, Float32StaysAsItIs) {
  const std::vector<float> values = {-0.0F, 1e-45F, std::numeric_limits<float>::max()};
  std::vector<float> copy(3);
  EXPECT_EQ(NarrowValues(values, FileDtype::kF32, std::as_writable_bytes(std::span(copy))), std::nullopt);
  EXPECT_EQ(std::memcmp(copy.data(), values.data(), sizeof(float) * 3), 0);
}

TEST(HfValues, TransposesLargeMatrices) {
  constexpr uint64_t kRows = 130, kColumns = 67;
  std::vector<float> matrix(kRows * kColumns), result(matrix.size()), back(matrix.size());
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
  Transpose(matrix, kRows, kColumns, result);
  EXPECT_EQ(result[3 * kRows + 100], matrix[100 * kColumns + 3]);
  Transpose(result, kColumns, kRows, back);
  EXPECT_EQ(back, matrix);
}

}  // namespace
}  // namespace atl
