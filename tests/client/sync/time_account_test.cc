#include "client/sync/time_account.h"

#include "gtest/gtest.h"
#include "tests/client/sync/fake_time.h"

namespace atl {
namespace {

TEST(TimeAccountTest, EverySecondGoesIntoExactlyOneUse) {
  FakeClock clock;
  TimeAccount account(&clock, TimeUse::kStart);
  clock.Advance(Seconds(1));
  {
    const Spending push(&account, TimeUse::kPush);
    clock.Advance(Seconds(2));
    {
      const Spending wait(&account, TimeUse::kWait);
      clock.Advance(Seconds(4));
    }
    clock.Advance(Seconds(8));
  }
  clock.Advance(Seconds(16));
  const TimeSpent spent = account.spent();
  EXPECT_EQ(spent[TimeUse::kStart], 17);
  EXPECT_EQ(spent[TimeUse::kPush], 10);
  EXPECT_EQ(spent[TimeUse::kWait], 4);
  EXPECT_EQ(spent.total(), 31);
}

TEST(TimeAccountTest, APartMovesToAnotherUseAndNothingEverShrinks) {
  FakeClock clock;
  TimeAccount account(&clock, TimeUse::kOther);
  {
    Spending pull(&account, TimeUse::kPull);
    clock.Advance(Seconds(10));
    EXPECT_EQ(account.spent().total(), 0) << "how much of it was waiting is not known yet";
    EXPECT_EQ(pull.open(), Seconds(10));
    pull.Move(TimeUse::kWait, Seconds(7));
    EXPECT_EQ(account.spent()[TimeUse::kWait], 7);
  }
  EXPECT_EQ(account.spent()[TimeUse::kPull], 3);
  {
    Spending compute(&account, TimeUse::kCompute);
    clock.Advance(Seconds(2));
    compute.Move(TimeUse::kData, Seconds(50));
    compute.Move(TimeUse::kOverdue, Seconds(-1));
  }
  EXPECT_EQ(account.spent()[TimeUse::kData], 2) << "no more than there was";
  EXPECT_EQ(account.spent()[TimeUse::kCompute], 0);
  EXPECT_EQ(account.spent().total(), 12);
}

TEST(TimeAccountTest, WithoutAnAccountNobodyCounts) {
  Spending spending(nullptr, TimeUse::kPull);
  spending.Move(TimeUse::kWait, Seconds(1));
  EXPECT_EQ(spending.open(), Duration(0));
}

TEST(TimeAccountsTest, ThreadsThatHaveGoneStayCounted) {
  FakeClock clock;
  TimeAccounts all;
  const TimeAccount a(&clock, TimeUse::kPush);
  {
    const TimeAccount b(&clock, TimeUse::kIdle);
    all.Add(&a);
    all.Add(&b);
    clock.Advance(Seconds(3));
    all.Remove(&b);
  }
  clock.Advance(Seconds(2));
  EXPECT_EQ(all.spent()[TimeUse::kPush], 5);
  EXPECT_EQ(all.spent()[TimeUse::kIdle], 3);
}

}  // namespace
}  // namespace atl
