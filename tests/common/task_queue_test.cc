#include "common/task_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace atl {
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

TEST(TaskQueueTest, StopRunsWhatWasPostedAndRejectsTheRest) {
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

TEST(TaskQueueTest, ABackgroundThreadIsNicerThanOthers) {
  int nice_of[2] = {};
  for (const ThreadPriority priority : {ThreadPriority::kNormal, ThreadPriority::kBackground}) {
    TaskQueue queue("prio", priority);
    int& nice = nice_of[priority == ThreadPriority::kBackground ? 1 : 0];
    ASSERT_TRUE(queue.Post([&] { nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }));
    queue.Drain();
  }
  EXPECT_EQ(nice_of[0], ::getpriority(PRIO_PROCESS, 0));
  EXPECT_EQ(nice_of[1], std::min(19, nice_of[0] + 10));
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
}  // namespace atl
