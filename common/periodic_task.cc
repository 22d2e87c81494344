#include "common/periodic_task.h"

#include <algorithm>
#include <utility>

namespace atl {

PeriodicTask::PeriodicTask(std::string name, Duration period, std::function<void()> run)
    : name_(std::move(name)), period_(period), run_(std::move(run)), thread_([this] { Loop(); }) {}

PeriodicTask::~PeriodicTask() { Stop(); }

void PeriodicTask::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  wake_.NotifyOne();
}

void PeriodicTask::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.NotifyOne();
  }
  if (thread_.joinable()) thread_.Join();
}

void PeriodicTask::Loop() {
  SetThreadName(name_);
  MonoTime due = SteadyNow() + period_;
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && !woken_ && SteadyNow() < due) wake_.WaitUntil(&mutex_, due);
      if (stopping_) return;
      woken_ = false;
    }
    due = SteadyNow() + period_;
    run_();
  }
}

}  // namespace atl
