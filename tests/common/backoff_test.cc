#include "common/backoff.h"

#include <set>

#include "gtest/gtest.h"

namespace atl {
namespace {

constexpr BackoffOptions kOptions{.initial = Seconds(1), .maximum = Seconds(8), .multiplier = 2};

TEST(BackoffTest, GrowsWithinItsBounds) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff(kOptions, seed);
    for (const double bound : {1.0, 2.0, 4.0, 8.0, 8.0, 8.0}) {
      const Duration wait = backoff.Next();
      EXPECT_GE(wait, Seconds(0.0999 * bound));
      EXPECT_LE(wait, Seconds(bound));
    }
  }
}

TEST(BackoffTest, ResetStartsAgain) {
  Backoff backoff(kOptions, 1);
  for (int i = 0; i < 10; ++i) backoff.Next();
  EXPECT_EQ(backoff.attempts(), 10);
  backoff.Reset();
  EXPECT_LE(backoff.Next(), Seconds(1));
  EXPECT_EQ(backoff.attempts(), 1);
}

TEST(BackoffTest, ManyAttemptsStayAtTheMaximum) {
  Backoff backoff(kOptions, 1);
  for (int i = 0; i < 100'000; ++i) EXPECT_LE(backoff.Next(), Seconds(8));
}

TEST(BackoffTest, SeedsSpreadTheWaits) {
  std::set<Duration> waits;
  for (uint64_t seed = 0; seed < 50; ++seed) waits.insert(Backoff(kOptions, seed).Next());
  EXPECT_GT(waits.size(), 45u);
  EXPECT_EQ(Backoff(kOptions, 3).Next(), Backoff(kOptions, 3).Next());
}

TEST(BackoffTest, AHintIsAFloor) {
  Backoff backoff(kOptions, 1);
  const Duration wait = backoff.NextAtLeast(Seconds(5));
  EXPECT_GE(wait, Seconds(5));
  EXPECT_LE(wait, Seconds(6));
  EXPECT_GT(backoff.NextAtLeast(Seconds(-5)), Duration::zero());
}

}  // namespace
}  // namespace atl
