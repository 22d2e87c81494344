#include "common/periodic_task.h"

#include <atomic>

#include "gtest/gtest.h"

namespace atl {
namespace {

class Counter {
 public:
  void Add() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  void WaitFor(int count) {
    MutexLock lock(&mutex_);
    while (count_ < count) changed_.Wait(&mutex_);
  }
  int count() {
    MutexLock lock(&mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ = 0;
};

TEST(PeriodicTaskTest, RunsAgainAndAgainUntilStopped) {
  Counter counter;
  PeriodicTask task("tick", Seconds(0.001), [&] { counter.Add(); });
  counter.WaitFor(5);
  task.Stop();
  const int after = counter.count();
  task.Wake();
  task.Stop();
  EXPECT_EQ(counter.count(), after);
}

TEST(PeriodicTaskTest, WakeDoesNotWaitForThePeriod) {
  Counter counter;
  PeriodicTask task("tick", Seconds(3600), [&] { counter.Add(); });
  EXPECT_EQ(counter.count(), 0);
  task.Wake();
  counter.WaitFor(1);
  task.Wake();
  counter.WaitFor(2);
}

}  // namespace
}  // namespace atl
