#include "server/events/event_throttle.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(EventThrottle, TellsABurstAndThenOnceInAnInterval) {
  EventThrottle events(3, Seconds(10));
  MonoTime now = {};
  const auto told_of = [&](int times) {
    int told = 0;
    for (int i = 0; i < times; ++i) told += events.Allow(now) ? 1 : 0;
    return told;
  };
  EXPECT_EQ(told_of(100), 3);
  now += Seconds(9.9);
  EXPECT_EQ(told_of(100), 0);
  now += Seconds(0.1);
  EXPECT_EQ(told_of(100), 1);
  now += Seconds(25);
  EXPECT_EQ(told_of(100), 2);
  now += Seconds(3600);
  EXPECT_EQ(told_of(100), 3);
}

}  // namespace
}  // namespace atl
