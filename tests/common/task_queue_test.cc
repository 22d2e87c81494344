#include "common/task_queue.h"

#include <vector>

#include "gtest/gtest.h"

namespace atoll {
namespace {

TEST(TaskQueueTest, RunsInOrderOnOneThread) {
  TaskQueue queue("test-queue-with-a-long-name");
  std::vector<int> order;
  std::thread::id thread;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue.Post([&, i] {
      if (i == 0) thread = std::this_thread::get_id();
      EXPECT_EQ(std::this_thread::get_id(), thread);
      order.push_back(i);
    }));
  }
  queue.Drain();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(TaskQueueTest, StopRunsWhatWasPostedAndRefusesTheRest) {
  int ran = 0;
  TaskQueue queue("q");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.Post([&] { ++ran; }));
  queue.Stop();
  EXPECT_EQ(ran, 10);
  EXPECT_FALSE(queue.Post([&] { ++ran; }));
  queue.Drain();
  queue.Stop();
  EXPECT_EQ(ran, 10);
  EXPECT_EQ(queue.pending(), 0u);
}

TEST(TaskQueueTest, ATaskMayPost) {
  TaskQueue queue("q");
  bool inner = false;
  ASSERT_TRUE(queue.Post([&] { EXPECT_TRUE(queue.Post([&] { inner = true; })); }));
  queue.Drain();  // the outer task has run, so the inner one is posted
  queue.Drain();
  EXPECT_TRUE(inner);
}

}  // namespace
}  // namespace atoll
