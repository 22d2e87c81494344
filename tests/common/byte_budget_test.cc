#include "common/byte_budget.h"

#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(ByteBudgetTest, ReservesAndGivesBack) {
  ByteBudget budget("contributions in flight", 100);
  {
    auto a = budget.TryReserve(60);
    ASSERT_TRUE(a.ok());
    EXPECT_EQ(a->bytes(), 60u);
    EXPECT_EQ(budget.used(), 60u);
    EXPECT_TRUE(budget.TryReserve(40).ok());
    EXPECT_EQ(budget.used(), 60u);
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(ByteBudgetTest, RejectionsCarryTheNumbers) {
  ByteBudget budget("contributions in flight", 4096);
  auto held = budget.TryReserve(3072);
  const absl::Status full = budget.TryReserve(2048).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(full.message()),
            "contributions in flight: 2.0 KiB do not fit, 3.0 KiB of 4.0 KiB are in use; retry later");
  const absl::Status never = budget.TryReserve(4097).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(never.message()),
            "contributions in flight: 4.0 KiB (4097 bytes) can never fit into the budget of 4.0 KiB");
}

TEST(ByteBudgetTest, MovesDoNotReturnTwice) {
  ByteBudget budget("x", 100);
  ByteBudget::Reservation a = *budget.TryReserve(30);
  ByteBudget::Reservation b = std::move(a);
  a.Release();  // NOLINT(bugprone-use-after-move): it has nothing left to return
  EXPECT_EQ(budget.used(), 30u);
  b = *budget.TryReserve(50);
  EXPECT_EQ(budget.used(), 50u);
  b.Release();
  b.Release();
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ByteBudgetTest, HoldsUnderThreads) {
  ByteBudget budget("x", 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 2000; ++i) {
        const auto held = budget.TryReserve(400);
        EXPECT_LE(budget.used(), 1000u);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_LE(budget.peak(), 800u);
}

TEST(ByteBudgetTest, ASmallerCapacityKeepsWhatIsHeldAndRejectsMore) {
  ByteBudget budget("contributions", 100);
  auto held = budget.TryReserve(80);
  ASSERT_TRUE(held.ok());
  budget.SetCapacity(50);
  EXPECT_EQ(budget.used(), 80u);
  EXPECT_TRUE(absl::IsResourceExhausted(budget.TryReserve(10).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(budget.TryReserve(60).status()));
  held->Release();
  EXPECT_TRUE(budget.TryReserve(50).ok());
}

}  // namespace
}  // namespace atl
