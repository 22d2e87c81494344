#include "server/rpc/io_pool.h"

#include <atomic>
#include <latch>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(IoPoolTest, RunsTasksOnAllThreadsAtOnce) {
  IoPool pool({.name = "t", .threads = 3, .max_queued = 10});
  std::latch all_at_once(4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool.Post([&] { all_at_once.arrive_and_wait(); }));
  }
  all_at_once.arrive_and_wait();  // hangs unless three run together
}

TEST(IoPoolTest, RejectsWhatDoesNotFitButNotWhatWasAdmitted) {
  IoPool pool({.name = "t", .threads = 1, .max_queued = 2});
  std::latch started(1);
  std::latch release(1);
  std::atomic<int> ran{0};
  ASSERT_TRUE(pool.Post([&] {
    started.count_down();
    release.wait();
  }));
  started.wait();
  EXPECT_TRUE(pool.Post([&] { ++ran; }));
  EXPECT_TRUE(pool.Post([&] { ++ran; }));
  EXPECT_FALSE(pool.Post([&] { ++ran; }));
  EXPECT_TRUE(pool.PostAdmitted([&] { ++ran; }));
  EXPECT_EQ(pool.queued(), 3u);
  release.count_down();
  pool.Stop();
  EXPECT_EQ(ran, 3);
}

TEST(IoPoolTest, StopRunsWhatWasPostedAndRejectsTheRest) {
  IoPool pool({.name = "t", .threads = 2, .max_queued = 100});
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.Post([&] { ++ran; }));
  pool.Stop();
  EXPECT_EQ(ran, 50);
  EXPECT_FALSE(pool.Post([&] { ++ran; }));
  EXPECT_FALSE(pool.PostAdmitted([&] { ++ran; }));
  pool.Stop();
  EXPECT_EQ(ran, 50);
}

}  // namespace
}  // namespace atl
