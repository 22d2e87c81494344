#include "core/delta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/core/test_values.h"

namespace atl {
namespace {

constexpr size_t kElements = 4096 * 3 + 256 * 5 + 17;

class DeltaTest : public testing::TestWithParam<CodecKind> {
 protected:
  const Codec& codec_ = CodecFor(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Codecs, DeltaTest,
                         testing::Values(CodecKind::kInt8, CodecKind::kInt4, CodecKind::kE3m0),
                         [](const auto& kind) { return std::string(CodecName(kind.param)); });

TEST_P(DeltaTest, WhoFollowsHoldsWhatIsPublished) {
  std::vector<float> theta = RandomValues(kElements, 1, 1);
  std::vector<float> published = theta;
  std::vector<float> follower = theta;
  std::vector<std::byte> payload(codec_.EncodedSize(kElements));
  for (int version = 1; version <= 50; ++version) {
    const std::vector<float> step = RandomValues(kElements, 100 + version);
    for (size_t i = 0; i < kElements; ++i) theta[i] -= step[i];
    std::vector<float> next(kElements);
    ASSERT_TRUE(EncodeDelta(codec_, theta, published, 0, payload, next).ok());
    ApplyDelta(codec_, payload, follower);
    ASSERT_EQ(Bits(follower), Bits(next)) << version;
    published = next;
  }
}

TEST_P(DeltaTest, DoesNotDrift) {
  // Each encoding takes the error of the last one along, so that the error stays that of one encoding, of
  // about the size of the last steps, while theta goes far.
  std::vector<float> theta(kElements, 0);
  std::vector<float> published = theta;
  std::vector<std::byte> payload(codec_.EncodedSize(kElements));
  double at_20 = 0;
  double at_200 = 0;
  for (int version = 1; version <= 200; ++version) {
    const std::vector<float> step = RandomValues(kElements, 1000 + version);
    for (size_t i = 0; i < kElements; ++i) theta[i] -= step[i];
    std::vector<float> next(kElements);
    ASSERT_TRUE(EncodeDelta(codec_, theta, published, 0, payload, next).ok());
    published = next;
    double error = 0;
    for (size_t i = 0; i < kElements; ++i) error += std::abs(static_cast<double>(theta[i]) - published[i]);
    if (version == 20) at_20 = error;
    if (version == 200) at_200 = error;
  }
  EXPECT_LT(at_200, 1.5 * at_20);
}

TEST_P(DeltaTest, RangesDoneApartGiveTheSameBits) {
  const std::vector<float> theta = RandomValues(kElements, 1, 1);
  const std::vector<float> from = RandomValues(kElements, 2, 1);
  std::vector<std::byte> whole(codec_.EncodedSize(kElements));
  std::vector<float> to(kElements);
  ASSERT_TRUE(EncodeDelta(codec_, theta, from, 0, whole, to).ok());
  constexpr size_t kCut = 8192;
  std::vector<std::byte> parts(whole.size());
  std::vector<float> apart(kElements);
  const size_t bytes = codec_.EncodedSize(kCut);
  ASSERT_TRUE(EncodeDelta(codec_, std::span(theta).first(kCut), std::span(from).first(kCut), 0,
                          std::span(parts).first(bytes), std::span(apart).first(kCut))
                  .ok());
  ASSERT_TRUE(EncodeDelta(codec_, std::span(theta).subspan(kCut), std::span(from).subspan(kCut), kCut,
                          std::span(parts).subspan(bytes), std::span(apart).subspan(kCut))
                  .ok());
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(Bits(apart), Bits(to));
}

TEST_P(DeltaTest, NamesTheElementThatIsNotFinite) {
  std::vector<float> theta(512, 1);
  std::vector<float> from(512, 1);
  theta[300] = std::numeric_limits<float>::max();
  from[300] = std::numeric_limits<float>::lowest();
  std::vector<std::byte> payload(codec_.EncodedSize(512));
  std::vector<float> to(512);
  const absl::Status status = EncodeDelta(codec_, theta, from, 4096, payload, to);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("element 43"), std::string::npos) << status;
}

}  // namespace
}  // namespace atl
