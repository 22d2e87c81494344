#include "core/payload_scan.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/payload_stats.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

std::optional<double> Scanned(const Codec& codec, std::span<const std::byte> payload, uint64_t elements,
                              size_t first, size_t piece) {
  PayloadScan scan(codec, elements);
  scan.Feed(payload.first(std::min(first, payload.size())));
  for (size_t at = first; at < payload.size(); at += piece) {
    scan.Feed(payload.subspan(at, std::min(piece, payload.size() - at)));
  }
  return scan.norm();
}

TEST(PayloadScan, HasTheBitsOfTheNormOfTheWholeHoweverItIsCut) {
  for (const CodecKind kind : kCodecKinds) {
    const Codec& codec = CodecFor(kind);
    for (const uint64_t elements : {uint64_t{1}, uint64_t{5000}, kPayloadPiece + 4097}) {
      const std::vector<std::byte> payload = Encoded(codec, RandomValues(elements, 7));
      const double whole = *PayloadNorm(codec, payload, elements);
      for (const size_t piece : {size_t{999}, size_t{65536}, payload.size()}) {
        EXPECT_EQ(Scanned(codec, payload, elements, 13, piece), whole)
            << CodecName(kind) << ", " << elements << " values, pieces of " << piece;
      }
    }
  }
}

TEST(PayloadScan, SaysNothingOfAPayloadThatIsShortOrLong) {
  const Codec& codec = CodecFor(CodecKind::kE3m0);
  std::vector<std::byte> payload = Encoded(codec, RandomValues(10000, 7));
  EXPECT_TRUE(Scanned(codec, payload, 10000, 0, 999).has_value());
  EXPECT_FALSE(Scanned(codec, std::span(payload).first(payload.size() - 1), 10000, 0, 999).has_value());
  payload.push_back(std::byte{0});
  EXPECT_FALSE(Scanned(codec, payload, 10000, 0, 999).has_value());
  EXPECT_FALSE(PayloadScan(codec, 10000).norm().has_value());
}

TEST(PayloadScan, SaysNothingOfAValueThatIsNotFinite) {
  const Codec& codec = CodecFor(CodecKind::kFp32);
  for (const uint64_t bad : {uint64_t{0}, uint64_t{4095}, uint64_t{9999}}) {
    std::vector<float> values = RandomValues(10000, 7);
    values[bad] = bad % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
    EXPECT_FALSE(Scanned(codec, Encoded(codec, values), 10000, 0, 4096).has_value()) << bad;
  }
  // The largest float32 is finite, and so are the squares of many.
  const std::vector<float> large(10000, std::numeric_limits<float>::max());
  EXPECT_TRUE(Scanned(codec, Encoded(codec, large), 10000, 0, 4096).has_value());
}

TEST(PayloadScan, SaysNothingOfAMalformedPayload) {
  const Codec& codec = CodecFor(CodecKind::kTopK64);
  std::vector<std::byte> payload = Encoded(codec, RandomValues(10000, 7));
  ASSERT_TRUE(codec.Validate(payload, 10000).ok());
  size_t rejected = 0;
  for (size_t at = 0; at < payload.size(); at += 3) {
    const std::byte kept = std::exchange(payload[at], ~payload[at]);
    const bool valid = codec.Validate(payload, 10000).ok() && PayloadNorm(codec, payload, 10000).ok();
    EXPECT_EQ(Scanned(codec, payload, 10000, 1, 100).has_value(), valid) << at;
    rejected += valid ? 0 : 1;
    payload[at] = kept;
  }
  EXPECT_GT(rejected, 0);
}

}  // namespace
}  // namespace atl
