#include "common/sleeper.h"

#include <thread>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(SleeperTest, SleepsAtLeastThatLong) {
  InterruptibleSleeper sleeper;
  const SystemClock clock{};
  const MonoTime begin = clock.Now();
  EXPECT_TRUE(sleeper.SleepFor(Seconds(0.02)));
  EXPECT_GE(clock.Now() - begin, Seconds(0.02));
  EXPECT_TRUE(sleeper.SleepFor(Seconds(-1)));
}

TEST(SleeperTest, AnInterruptEndsThisAndEveryLaterSleep) {
  InterruptibleSleeper sleeper;
  std::thread other([&] { sleeper.Interrupt(); });
  EXPECT_FALSE(sleeper.SleepFor(Seconds(3600)));
  other.join();
  EXPECT_TRUE(sleeper.interrupted());
  EXPECT_FALSE(sleeper.SleepFor(Seconds(3600)));
}

}  // namespace
}  // namespace atl
