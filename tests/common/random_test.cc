#include "common/random.h"

#include <set>

#include "gtest/gtest.h"

namespace atl {
namespace {

// The first outputs of Vigna's splitmix64.c from state 0 and from state 1234567.
TEST(RandomTest, SplitMixReferenceSequence) {
  SplitMixGenerator zero(0);
  EXPECT_EQ(zero(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(zero(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(zero(), 0x06c45d188009454fu);
  SplitMixGenerator other(1234567);
  EXPECT_EQ(other(), 6457827717110365317u);
  EXPECT_EQ(other(), 3203168211198807973u);
}

TEST(RandomTest, BelowIsUniform) {
  SplitMixGenerator random(3);
  int counts[6] = {};
  for (int i = 0; i < 60'000; ++i) {
    const uint64_t value = random.Below(6);
    ASSERT_LT(value, 6u);
    ++counts[value];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomTest, UniformStaysInItsInterval) {
  SplitMixGenerator random(3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(RandomTest, DerivedSeedsAreDistinct) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (uint64_t purpose = 0; purpose < 50; ++purpose) seen.insert(DeriveSeed(seed, purpose));
  }
  EXPECT_EQ(seen.size(), 2500u);
}

}  // namespace
}  // namespace atl
