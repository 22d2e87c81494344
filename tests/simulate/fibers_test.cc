// Threads, locks and clocks in virtual time (simulate/fiber_scheduler.h), and what of ours waits by them.

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutex.h"
#include "common/periodic_task.h"
#include "common/sleeper.h"
#include "common/task_queue.h"
#include "common/thread.h"
#include "common/trace_context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulate/fiber_scheduler.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status RunIn(uint64_t seed, const std::function<void()>& main) {
  FiberScheduler scheduler({.seed = seed});
  return scheduler.Run(main);
}

double Now() { return ToSeconds(SteadyNow().time_since_epoch() - Seconds(1000000)); }

TEST(FibersTest, SleepsTakeVirtualTimeOnly) {
  const auto began = std::chrono::steady_clock::now();
  double woken = 0;
  const absl::Status ran = RunIn(1, [&] {
    SleepThisThread(Seconds(3600));
    woken = Now();
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(woken, 3600);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
}

TEST(FibersTest, SleepersWakeInTheOrderOfTheirDeadlines) {
  std::vector<std::string> order;
  const absl::Status ran = RunIn(2, [&] {
    std::vector<Thread> threads;
    for (const int seconds : {30, 10, 20}) {
      threads.emplace_back([&order, seconds] {
        SleepThisThread(Seconds(seconds));
        order.push_back(absl::StrCat(seconds, " at ", Now()));
      });
    }
    for (Thread& thread : threads) thread.Join();
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(absl::StrJoin(order, ", "), "10 at 10, 20 at 20, 30 at 30");
}

/// Five threads add to one sum under a lock, with a wait in the middle. The order in which they came.
std::string Race(uint64_t seed) {
  std::string order;
  const absl::Status ran = RunIn(seed, [&] {
    Mutex mutex;
    int sum = 0;
    std::vector<Thread> threads;
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([&, i] {
        for (int turn = 0; turn < 4; ++turn) {
          const MutexLock lock(&mutex);
          const int before = sum;
          SleepThisThread(Seconds(0.001));
          sum = before + 1;
          absl::StrAppend(&order, i);
        }
      });
    }
    for (Thread& thread : threads) thread.Join();
    EXPECT_EQ(sum, 20);
  });
  EXPECT_TRUE(ran.ok()) << ran;
  return order;
}

TEST(FibersTest, ASeedIsAnOrder) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    orders.insert(Race(seed));
    EXPECT_EQ(Race(seed), Race(seed)) << seed;
  }
  EXPECT_GT(orders.size(), 15U) << "different seeds try different orders";
}

TEST(FibersTest, AConditionWakesOneOrAllOrNobodyInTime) {
  int woken = 0;
  bool in_time = true;
  const absl::Status ran = RunIn(3, [&] {
    Mutex mutex;
    CondVar changed;
    bool open = false;
    std::vector<Thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const MutexLock lock(&mutex);
        while (!open) changed.Wait(&mutex);
        ++woken;
      });
    }
    {
      const MutexLock lock(&mutex);
      CondVar nobody;
      in_time = nobody.WaitUntil(&mutex, SteadyNow() + Seconds(5));
      EXPECT_EQ(Now(), 5);
      EXPECT_EQ(woken, 0);
      open = true;
      changed.NotifyAll();
    }
    for (Thread& thread : threads) thread.Join();
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_FALSE(in_time);
  EXPECT_EQ(woken, 3);
}

TEST(FibersTest, AWokenThreadIsNotWokenByItsDeadlineToo) {
  const absl::Status ran = RunIn(4, [] {
    Mutex mutex;
    CondVar changed;
    Thread other([&] {
      SleepThisThread(Seconds(1));
      const MutexLock lock(&mutex);
      changed.NotifyOne();
    });
    {
      const MutexLock lock(&mutex);
      EXPECT_TRUE(changed.WaitUntil(&mutex, SteadyNow() + Seconds(2)));
    }
    EXPECT_EQ(Now(), 1);
    SleepThisThread(Seconds(10));
    EXPECT_EQ(Now(), 11);
    other.Join();
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST(FibersTest, ADeadlockIsNamed) {
  const absl::Status ran = RunIn(5, [] {
    // Leaked with the fibers that wait for them.
    auto* const first = new Mutex;
    auto* const second = new Mutex;
    const auto take = [](Mutex* one, Mutex* other) {
      const MutexLock lock(one);
      SleepThisThread(Seconds(1));
      const MutexLock both(other);
    };
    // Static: the leak checker does not see what an abandoned fiber holds.
    static auto* const thread = new Thread([=] {
      SetThreadName("second");
      take(second, first);
    });
    take(first, second);
    thread->Join();
  });
  EXPECT_EQ(ran.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ran.message()),
              AllOf(HasSubstr("no thread can ever run again at 1.0"), HasSubstr("thread 1 waits for a lock"),
                    HasSubstr("thread 2 second waits for a lock")));
}

TEST(FibersTest, WhatWaitsByTheSeamRunsInVirtualTime) {
  const absl::Status ran = RunIn(6, [] {
    std::vector<double> ticks;
    {
      PeriodicTask task("ticks", Seconds(60), [&ticks] { ticks.push_back(Now()); });
      InterruptibleSleeper sleeper;
      EXPECT_TRUE(sleeper.SleepFor(Seconds(150)));
      task.Wake();
      TaskQueue queue("tasks");
      std::vector<int> done;
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Post([&done, i] { done.push_back(i); }));
      queue.Drain();
      EXPECT_EQ(absl::StrJoin(done, ","), "0,1,2");
      Thread waker([&sleeper] {
        SleepThisThread(Seconds(1));
        sleeper.Interrupt();
      });
      EXPECT_FALSE(sleeper.SleepFor(Seconds(1000)));
      waker.Join();
    }
    EXPECT_EQ(absl::StrJoin(ticks, ","), "60,120,150");
    EXPECT_EQ(Now(), 151);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST(FibersTest, EachThreadHasItsOwnTraceAndId) {
  const absl::Status ran = RunIn(7, [] {
    const ScopedTrace mine(NewTrace());
    const std::string my_trace = CurrentTraceId();
    const uint64_t my_id = CurrentThreadId();
    Thread other([&] {
      EXPECT_EQ(CurrentTraceId(), "");
      EXPECT_NE(CurrentThreadId(), my_id);
      const ScopedTrace its(NewTrace());
      SleepThisThread(Seconds(2));
      EXPECT_NE(CurrentTraceId(), my_trace);
    });
    SleepThisThread(Seconds(1));
    EXPECT_EQ(CurrentTraceId(), my_trace);
    EXPECT_EQ(CurrentThreadId(), my_id);
    other.Join();
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(CurrentTraceId(), "");
}

TEST(FibersTest, ManyThreadsReuseStacks) {
  int ended = 0;
  const absl::Status ran = RunIn(8, [&] {
    for (int i = 0; i < 20000; ++i) {
      Thread thread([&ended] { ++ended; });
      thread.Join();
    }
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(ended, 20000);
}

}  // namespace
}  // namespace atl
