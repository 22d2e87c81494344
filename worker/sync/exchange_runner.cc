#include "worker/sync/exchange_runner.h"

#include <chrono>
#include <utility>

#include "common/task_queue.h"

namespace atoll {

ExchangeThreads::ExchangeThreads(std::vector<std::unique_ptr<ExchangeLane>> lanes,
                                 std::unique_ptr<ExchangeLane> own_lane)
    : lanes_(std::move(lanes)), own_lane_(std::move(own_lane)), free_(lanes_.size()) {
  for (const auto& lane : lanes_) threads_.emplace_back([this, &lane] { Run(*lane); });
}

ExchangeThreads::~ExchangeThreads() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool ExchangeThreads::Start(Work work) {
  const MutexLock lock(&mutex_);
  if (posted_.size() >= free_) return false;
  posted_.push_back(std::move(work));
  wake_.NotifyOne();
  return true;
}

bool ExchangeThreads::HasFreeLane() {
  const MutexLock lock(&mutex_);
  return posted_.size() < free_;
}

void ExchangeThreads::AwaitNews(Duration at_most) {
  const MonoTime deadline = std::chrono::steady_clock::now() + at_most;
  const MutexLock lock(&mutex_);
  while (!news_) {
    if (!changed_.WaitUntil(&mutex_, deadline)) break;
  }
  news_ = false;
}

void ExchangeThreads::News() {
  {
    const MutexLock lock(&mutex_);
    news_ = true;
  }
  changed_.NotifyOne();
}

bool ExchangeThreads::Finish(Duration at_most) {
  const MonoTime deadline = std::chrono::steady_clock::now() + at_most;
  const MutexLock lock(&mutex_);
  while (!posted_.empty() || free_ < lanes_.size()) {
    if (!changed_.WaitUntil(&mutex_, deadline)) return false;
  }
  return true;
}

void ExchangeThreads::Run(ExchangeLane& lane) {
  SetThreadName("exchange");
  mutex_.Lock();
  while (true) {
    while (posted_.empty() && !stopping_) wake_.Wait(&mutex_);
    if (posted_.empty()) break;
    const Work work = std::move(posted_.front());
    posted_.pop_front();
    --free_;
    mutex_.Unlock();
    {
      const Spending spending(lane.time(), TimeUse::kOther);
      work(lane);
    }
    mutex_.Lock();
    ++free_;
    news_ = true;
    changed_.NotifyOne();
  }
  mutex_.Unlock();
}

}  // namespace atoll
