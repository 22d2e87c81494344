#include "common/task_backlog.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

namespace atl {
namespace {

TEST(TaskBacklogTest, RunsInOrderAndEndsWhenClosedAndEmpty) {
  TaskBacklog backlog;
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(backlog.Post([&order, i] { order.push_back(i); }));
  EXPECT_EQ(backlog.size(), 5u);
  backlog.Close();
  EXPECT_FALSE(backlog.Post([&] { order.push_back(5); }));
  backlog.Run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(backlog.size(), 0u);
}

TEST(TaskBacklogTest, ALimitCountsThoseThatWaitAndWhoHasNoneIsLetIn) {
  TaskBacklog backlog;
  int ran = 0;
  EXPECT_TRUE(backlog.Post([&] { ++ran; }, 2));
  EXPECT_TRUE(backlog.Post([&] { ++ran; }, 2));
  EXPECT_FALSE(backlog.Post([&] { ran += 100; }, 2));
  EXPECT_TRUE(backlog.Post([&] { ++ran; }));
  backlog.Close();
  backlog.Run();
  EXPECT_EQ(ran, 3);
}

TEST(TaskBacklogTest, ATaskMayPostAndCloseEndsEveryThread) {
  TaskBacklog backlog;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { backlog.Run(); });
  std::latch ran(2);
  ASSERT_TRUE(backlog.Post([&] {
    EXPECT_TRUE(backlog.Post([&] { ran.count_down(); }));
    ran.count_down();
  }));
  ran.wait();
  backlog.Close();
  for (std::thread& thread : threads) thread.join();  // hangs unless all are woken
}

}  // namespace
}  // namespace atl
