#include "core/payload_stats.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

TEST(PayloadNorm, IsTheNormOfWhatIsDecoded) {
  for (const CodecKind kind : kCodecKinds) {
    const Codec& codec = CodecFor(kind);
    for (const size_t n : {0, 1, 7, 9, 4096, 10001}) {
      const std::vector<std::byte> payload = Encoded(codec, RandomValues(n, n));
      const std::vector<float> decoded = Decoded(codec, payload, n);
      long double reference = 0;
      for (const float value : decoded) reference += static_cast<long double>(value) * value;
      const absl::StatusOr<double> norm = PayloadNorm(codec, payload, n);
      ASSERT_TRUE(norm.ok());
      EXPECT_NEAR(*norm, static_cast<double>(std::sqrt(reference)), 1e-13 * (1 + *norm));
      EXPECT_EQ(*norm, VectorNorm(decoded));
    }
  }
}

TEST(PayloadNorm, OrderOfSummationIsFixed) {
  // One block written out: eight interleaved sums, added as a tree. Other orders round differently for these
  // values.
  const std::vector<float> values = RandomValues(21, 3, 1e3f);
  double s[8] = {};
  for (size_t i = 0; i < values.size(); ++i) s[i % 8] += double{values[i]} * values[i];
  EXPECT_EQ(VectorNorm(values), std::sqrt(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))));
}

TEST(PayloadNorm, DoesNotOverflowOnLargeFiniteValues) {
  const std::vector<float> values(3, std::numeric_limits<float>::max());
  EXPECT_NEAR(VectorNorm(values) / std::numeric_limits<float>::max(), std::sqrt(3.0), 1e-12);
}

TEST(PayloadNorm, NamesTheElementThatIsNotFinite) {
  std::vector<float> values = RandomValues(9000, 1);
  values[8999] = std::numeric_limits<float>::quiet_NaN();
  const Codec& codec = CodecFor(CodecKind::kFp32);
  const absl::Status status = PayloadNorm(codec, Encoded(codec, values), values.size()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("element 8999"));
}

TEST(FirstNonFinite, FindsTheFirst) {
  std::vector<float> values(5000, std::numeric_limits<float>::max());
  EXPECT_EQ(FirstNonFinite(values), std::nullopt);
  values[4999] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(FirstNonFinite(values), 4999u);
  values[1024] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FirstNonFinite(values), 1024u);
  EXPECT_EQ(FirstNonFinite({}), std::nullopt);
}

}  // namespace
}  // namespace atl
