#include "server/members/join_rate_limiter.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

class JoinRateLimiterTest : public ::testing::Test {
 protected:
  /// How many of `calls` from this address are let in now.
  int Enter(const std::string& address, int calls) {
    int entered = 0;
    for (int i = 0; i < calls; ++i) entered += join_limiter_.Enter(address, now_) ? 0 : 1;
    return entered;
  }
  void Pass(double seconds) { now_ += Seconds(seconds); }

  JoinRateLimiter join_limiter_{10};  // 50 at once, 25 from one address
  MonoTime now_{};
};

TEST_F(JoinRateLimiterTest, ALoopOnOneMachineLeavesHalfForTheOthers) {
  EXPECT_EQ(Enter("10.0.0.1", 1000), 25);
  EXPECT_EQ(Enter("10.0.0.2", 20), 20);
  EXPECT_EQ(Enter("10.0.0.3", 20), 5) << "50 are all there is at once";
}

TEST_F(JoinRateLimiterTest, GivesBackAtTheRate) {
  EXPECT_EQ(Enter("10.0.0.1", 25), 25);
  Pass(2);
  EXPECT_EQ(Enter("10.0.0.1", 100), 10);
  Pass(1000);
  EXPECT_EQ(Enter("10.0.0.1", 100), 25) << "and no more than the burst is saved up";
}

TEST_F(JoinRateLimiterTest, SaysWhenToComeBack) {
  Enter("10.0.0.1", 25);
  const auto wait = join_limiter_.Enter("10.0.0.1", now_);
  ASSERT_TRUE(wait.has_value());
  EXPECT_GE(ToSeconds(*wait), 1);
  EXPECT_LE(ToSeconds(*wait), 30);
  Pass(ToSeconds(*wait));
  EXPECT_EQ(Enter("10.0.0.1", 1), 1);
}

TEST_F(JoinRateLimiterTest, ASlowRateStillLetsSomebodyIn) {
  join_limiter_.SetRate(0.1);
  EXPECT_EQ(Enter("10.0.0.1", 10), 1);
  Pass(60);
  EXPECT_EQ(Enter("10.0.0.1", 10), 1);
}

TEST_F(JoinRateLimiterTest, CallersOfThisProcessShareWhatThereIs) { EXPECT_EQ(Enter("", 1000), 50); }

TEST_F(JoinRateLimiterTest, ManyAddressesAreNotRememberedForEver) {
  join_limiter_.SetRate(1e6);
  for (int i = 0; i < 20000; ++i) EXPECT_EQ(Enter("10.0." + std::to_string(i), 1), 1);
  Pass(10);
  EXPECT_EQ(Enter("10.1.0.1", 1), 1);
}

}  // namespace
}  // namespace atl
