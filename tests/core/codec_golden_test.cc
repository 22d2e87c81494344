// The bytes of every codec are frozen: tests/golden/core/*.hex, written by an independent implementation
// (make_codecs.py beside them).

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"
#include "tests/paths.h"

namespace atl {
namespace {

std::vector<float> GoldenValues(CodecKind kind) {
  const int n = CodecFor(kind).sparse() != nullptr ? 5000 : 800;
  std::vector<float> values(n);
  for (int i = 0; i < n; ++i) {
    values[i] = static_cast<float>((i * 7919 % 2001 - 1000) / 1024.0 * std::exp2(i % 13 - 8));
  }
  values[3] = 0.0f;
  values[4] = -0.0f;
  values[790] = 1e6f;
  values[6] = 0x1p-24f;
  values[7] = 0x1p-25f;
  std::fill(values.begin() + 256, values.begin() + 512, 0.0f);
  return values;
}

std::string ReadHex(const std::string& name) {
  std::ifstream file(std::string(ATOLL_SOURCE_DIR) + "/tests/golden/core/" + name + ".hex");
  std::string all;
  for (std::string line; std::getline(file, line);) all += line;
  return all;
}

std::string ToHex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::byte b : bytes) {
    hex += kDigits[std::to_integer<int>(b) >> 4];
    hex += kDigits[std::to_integer<int>(b) & 15];
  }
  return hex;
}

class CodecGolden : public testing::TestWithParam<CodecKind> {};

TEST_P(CodecGolden, BytesAreFrozen) {
  const Codec& codec = CodecFor(GetParam());
  const std::string golden = ReadHex(std::string(CodecName(GetParam())));
  ASSERT_FALSE(golden.empty());
  EXPECT_EQ(ToHex(Encoded(codec, GoldenValues(GetParam()))), golden);
}

TEST_P(CodecGolden, EncodingWhatWasDecodedGivesTheSameBytes) {
  const Codec& codec = CodecFor(GetParam());
  if (GetParam() == CodecKind::kInt8Quantile) return;  // what is decoded has another deviation
  const std::vector<float> values = GoldenValues(GetParam());
  const std::vector<float> decoded = Decoded(codec, Encoded(codec, values), values.size());
  EXPECT_EQ(Decoded(codec, Encoded(codec, decoded), values.size()), decoded);
}

TEST(CodecExamples, AreThoseOfTheDocument) {
  // The table of examples in docs/reference/codecs.md.
  const auto hex = [](CodecKind kind, std::vector<float> values) {
    return ToHex(Encoded(CodecFor(kind), values));
  };
  EXPECT_EQ(hex(CodecKind::kFp32, {1, -2, 0.5}), "0000803f000000c00000003f");
  EXPECT_EQ(hex(CodecKind::kFp16, {1, -2, 0.5}), "003c00c00038");
  EXPECT_EQ(hex(CodecKind::kFp16, {65520, 0x1p-24f, 0x1p-25f}), "ff7b01000000");
  EXPECT_EQ(hex(CodecKind::kBf16, {1, -2, 0.5}), "803f00c0003f");
  EXPECT_EQ(hex(CodecKind::kInt8, {127, -127, 1, 0.5, 1.5}), "0000803f7f81010002");
  EXPECT_EQ(hex(CodecKind::kInt4, {7, -7, 1, 0.5, 1.5}), "0000803f072901");
  EXPECT_EQ(hex(CodecKind::kE3m0, {1, -0.5, 0.25, 0.01, -0.0625}), "0000803f17be05");
}

INSTANTIATE_TEST_SUITE_P(All, CodecGolden, testing::ValuesIn(kCodecKinds),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

}  // namespace
}  // namespace atl
