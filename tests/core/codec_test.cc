#include "core/codec.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/fragment_plan.h"
#include "core/payload_stats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

using testing::Each;
using testing::HasSubstr;

class EveryCodec : public testing::TestWithParam<CodecKind> {
 protected:
  const Codec& codec_ = CodecFor(GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, EveryCodec, testing::ValuesIn(kCodecKinds),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

TEST_P(EveryCodec, KnowsItself) {
  EXPECT_EQ(codec_.kind(), GetParam());
  EXPECT_EQ(FindCodec(GetParam()), &codec_);
  EXPECT_EQ(kChunkAlignment % codec_.block_elements(), 0u);
}

TEST(Codec, ForeignKindIsNotFound) {
  EXPECT_EQ(FindCodec(static_cast<CodecKind>(200)), nullptr);
  EXPECT_EQ(CodecName(static_cast<CodecKind>(200)), "unknown");
}

bool HasScaledBlocks(CodecKind kind) {
  return kind == CodecKind::kInt8 || kind == CodecKind::kInt4 || kind == CodecKind::kE3m0;
}

/// Half of the distance between the levels about in[i].
double BlockBound(CodecKind kind, const std::vector<float>& in, size_t i) {
  float largest = 0;
  for (size_t j = i / 256 * 256; j < std::min(in.size(), i / 256 * 256 + 256); ++j) {
    largest = std::max(largest, std::abs(in[j]));
  }
  if (kind == CodecKind::kInt8) return largest / 127 * 0.5;
  if (kind == CodecKind::kInt4) return largest / 7 * 0.5;
  // Levels double: from one to the next it is a third of the middle. Below the least there is only zero.
  return std::max(std::abs(double{in[i]}) / 3, largest * 0x1p-7);
}

class PreciseCodec : public EveryCodec {};
INSTANTIATE_TEST_SUITE_P(All, PreciseCodec,
                         testing::Values(CodecKind::kFp32, CodecKind::kFp16, CodecKind::kBf16,
                                         CodecKind::kInt8, CodecKind::kInt4, CodecKind::kE3m0),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

TEST_P(PreciseCodec, RoundTripIsWithinItsPrecision) {
  // Half a unit in the last place relative to the value; in scaled blocks half a level.
  const double relative = GetParam() == CodecKind::kFp32   ? 0
                          : GetParam() == CodecKind::kFp16 ? 0x1p-11
                                                           : 0x1p-8;
  for (const size_t n : {0, 1, 63, 64, 255, 256, 257, 4096, 5000}) {
    const std::vector<float> in = RandomValues(n, n);
    const std::vector<std::byte> payload = Encoded(codec_, in);
    ASSERT_TRUE(codec_.Validate(payload, n).ok());
    const std::vector<float> out = Decoded(codec_, payload, n);
    for (size_t i = 0; i < n; ++i) {
      double bound = relative * std::abs(in[i]) + 0x1p-25;  // fp16's subnormal unit is 2^-24
      if (HasScaledBlocks(GetParam())) bound = BlockBound(GetParam(), in, i) * (1 + 1e-5);
      ASSERT_LE(std::abs(double{out[i]} - in[i]), bound) << "element " << i << " of " << n;
    }
  }
}

TEST_P(EveryCodec, EveryRangeDecodesToTheSameBits) {
  constexpr size_t kElements = 3 * 4096 + 700;
  const std::vector<std::byte> payload = Encoded(codec_, RandomValues(kElements, 7));
  const std::vector<float> whole = Decoded(codec_, payload, kElements);
  for (const size_t step : {codec_.block_elements(), 3 * codec_.block_elements(), uint64_t{4096}}) {
    for (size_t first = 0; first < kElements; first += step) {
      for (const size_t length : {size_t{1}, step - 1, step}) {
        std::vector<float> part(std::min(length, kElements - first));
        codec_.DecodeRange(payload, kElements, first, part);
        ASSERT_EQ(Bits(part), Bits(std::span(whole).subspan(first, part.size())))
            << first << "+" << part.size();
      }
    }
  }
}

TEST_P(EveryCodec, PiecesMakeUpThePayload) {
  // What a coordinator that encodes in parallel, and error feedback, rely on.
  constexpr size_t kElements = 2 * kPayloadPiece + 5001;
  const std::vector<float> values = RandomValues(kElements, 5);
  std::vector<std::byte> pieces;
  for (size_t first = 0; first < kElements; first += kPayloadPiece) {
    EXPECT_EQ(pieces.size(), codec_.EncodedSize(first));
    const size_t n = std::min<size_t>(kPayloadPiece, kElements - first);
    const std::vector<std::byte> piece = Encoded(codec_, std::span(values).subspan(first, n));
    pieces.insert(pieces.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(Encoded(codec_, values), pieces);
}

TEST_P(EveryCodec, ZerosDecodeToZeros) {
  // The gaps between tensors must not move.
  for (const float scale : {0x1p-149f, 0x1p-130f, 1e-3f, 1e30f}) {
    std::vector<float> in = RandomValues(9000, 3, scale);
    for (size_t i = 0; i < in.size(); ++i) {
      if (i / 512 % 3 == 1) in[i] = 0;
      if (i > 4200 && i != 5000) in[i] = 0;
    }
    const std::vector<float> out = Decoded(codec_, Encoded(codec_, in), in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] != 0) continue;
      ASSERT_EQ(out[i], 0) << i << " of scale " << scale;
    }
  }
}

TEST_P(EveryCodec, AccumulateIsDecodeThenMultiplyThenAdd) {
  constexpr size_t kElements = 2 * 4096 + 300;
  const std::vector<std::byte> payload = Encoded(codec_, RandomValues(kElements, 8));
  const std::vector<float> decoded = Decoded(codec_, payload, kElements);
  std::vector<float> expected = RandomValues(kElements, 9);
  std::vector<float> actual = expected;
  for (size_t i = 0; i < kElements; ++i) {
    const float product = 0.3f * decoded[i];
    expected[i] = expected[i] + product;
  }
  codec_.AccumulateRange(payload, kElements, 0, 0.3f, actual);
  EXPECT_EQ(Bits(actual), Bits(expected));
}

TEST_P(EveryCodec, NonFiniteValuesAreNeverMadeNumbers) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> in = RandomValues(1000, 1);
    in[700] = bad;
    const std::vector<std::byte> payload = Encoded(codec_, in);
    const absl::Status valid = codec_.Validate(payload, in.size());
    const absl::StatusOr<double> norm = PayloadNorm(codec_, payload, in.size());
    EXPECT_FALSE(valid.ok() && norm.ok()) << bad;
    if (valid.ok()) {
      EXPECT_THAT(std::string(norm.status().message()), HasSubstr("element 700"));
    }
  }
}

TEST_P(EveryCodec, RejectsEveryWrongSize) {
  std::vector<std::byte> payload = Encoded(codec_, RandomValues(600, 2));
  payload.push_back(std::byte{0});
  const absl::Status longer = codec_.Validate(payload, 600);
  EXPECT_EQ(longer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(longer.message()), HasSubstr("600 values take"));
  EXPECT_FALSE(codec_.Validate(std::span(payload).first(payload.size() - 2), 600).ok());
  EXPECT_FALSE(codec_.Validate({}, 600).ok());
  EXPECT_TRUE(codec_.Validate({}, 0).ok());
}

TEST_P(EveryCodec, ChangedPayloadsAreRejectedOrDecodeWithinBounds) {
  // One to four changes in a good payload get further into it than random bytes do.
  constexpr size_t kElements = 4096 + 1500;
  std::mt19937_64 engine(4);
  const std::vector<std::byte> good = Encoded(codec_, RandomValues(kElements, 1));
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::byte> payload = good;
    for (uint64_t change = engine() % 4; change < 4; ++change) {
      payload[engine() % payload.size()] = static_cast<std::byte>(engine());
    }
    if (!codec_.Validate(payload, kElements).ok()) continue;
    const absl::StatusOr<double> norm = PayloadNorm(codec_, payload, kElements);
    const std::vector<float> decoded = Decoded(codec_, payload, kElements);
    if (!norm.ok()) continue;
    EXPECT_EQ(*norm, VectorNorm(decoded));
  }
}

TEST_P(EveryCodec, RandomBytesAreRejectedOrDecodeToSomething) {
  constexpr size_t kElements = 1500;
  std::mt19937_64 engine(3);
  std::vector<std::byte> payload(codec_.EncodedSize(kElements));
  for (int trial = 0; trial < 200; ++trial) {
    for (std::byte& b : payload) b = static_cast<std::byte>(engine());
    if (!codec_.Validate(payload, kElements).ok()) continue;
    const absl::StatusOr<double> norm = PayloadNorm(codec_, payload, kElements);
    if (norm.ok()) {
      EXPECT_TRUE(std::isfinite(*norm));
    }
  }
}

class ScaledBlocks : public EveryCodec {};
INSTANTIATE_TEST_SUITE_P(All, ScaledBlocks,
                         testing::Values(CodecKind::kInt8, CodecKind::kInt4, CodecKind::kE3m0),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

TEST_P(ScaledBlocks, RejectAScaleThatIsNoScale) {
  const size_t second = codec_.EncodedSize(256);
  for (const float bad :
       {-1.0f, -0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<std::byte> payload = Encoded(codec_, RandomValues(600, 4));
    std::memcpy(payload.data() + second, &bad, 4);
    const absl::Status status = codec_.Validate(payload, 600);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("block 1 (values from 256 on)"));
  }
}

TEST_P(ScaledBlocks, TheTiniestStayFiniteAndOnTheirSide) {
  for (const float tiny : {0x1p-149f, 0x1p-140f, 0x1p-126f}) {
    const std::vector<float> in(256, -tiny);
    const std::vector<float> out = Decoded(codec_, Encoded(codec_, in), 256);
    EXPECT_THAT(out, Each(testing::AllOf(testing::Le(0.0f), testing::Ge(-2 * tiny)))) << tiny;
  }
}

TEST(FourBitCodecs, RejectAnUnusedHalfByteThatIsNotZero) {
  for (const CodecKind kind : {CodecKind::kInt4, CodecKind::kE3m0}) {
    std::vector<std::byte> payload = Encoded(CodecFor(kind), RandomValues(301, 1));
    ASSERT_TRUE(CodecFor(kind).Validate(payload, 301).ok());
    payload.back() |= std::byte{0x10};
    EXPECT_FALSE(CodecFor(kind).Validate(payload, 301).ok());
  }
}

TEST(E3m0Codec, RoundsHalfWayUpAndKeepsSigns) {
  // Of scale 1: levels 1, 1/2, 1/4 .. 1/64, 0. A value half way goes to the larger one.
  const Codec& codec = CodecFor(CodecKind::kE3m0);
  const float below = std::nextafter(0.75f, 0.0f);
  const std::vector<float> in = {1,     -0.75f,  -below,  0.375f,  -0x1p-6f,
                                 0.01f, 0x1p-7f, 0.0078f, -0.001f, -0.0f};
  const std::vector<float> out = {1, -1, -0.5f, 0.5f, -0x1p-6f, 0x1p-6f, 0x1p-6f, 0, 0, 0};
  EXPECT_EQ(Bits(Decoded(codec, Encoded(codec, in), in.size())), Bits(out));
}

TEST(HalfCodecs, LargeNumbersSaturate) {
  const std::vector<float> in = {65519.0f, 65520.0f, 1e30f, -1e30f, std::numeric_limits<float>::max()};
  const Codec& fp16 = CodecFor(CodecKind::kFp16);
  EXPECT_EQ(Decoded(fp16, Encoded(fp16, in), 5), (std::vector<float>{65504, 65504, 65504, -65504, 65504}));
  const Codec& bf16 = CodecFor(CodecKind::kBf16);
  EXPECT_EQ(Decoded(bf16, Encoded(bf16, in), 5).back(), 0x1.fep127f);
}

}  // namespace
}  // namespace atl
