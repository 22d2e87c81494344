#include "client/sync/exchange_runner.h"

#include <utility>

namespace atl {

ExchangeThreads::ExchangeThreads(std::vector<std::unique_ptr<ExchangeChannel>> channels,
                                 std::unique_ptr<ExchangeChannel> own_channel)
    : channels_(std::move(channels)), own_channel_(std::move(own_channel)), free_(channels_.size()) {
  for (const auto& channel : channels_) threads_.emplace_back([this, &channel] { Run(*channel); });
}

ExchangeThreads::~ExchangeThreads() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (Thread& thread : threads_) thread.Join();
}

bool ExchangeThreads::Start(Work work) {
  const MutexLock lock(&mutex_);
  if (posted_.size() >= free_) return false;
  posted_.push_back(std::move(work));
  wake_.NotifyOne();
  return true;
}

bool ExchangeThreads::HasFreeChannel() {
  const MutexLock lock(&mutex_);
  return posted_.size() < free_;
}

void ExchangeThreads::AwaitChange(Duration at_most) {
  const MonoTime deadline = SteadyNow() + at_most;
  const MutexLock lock(&mutex_);
  while (!notified_) {
    if (!changed_.WaitUntil(&mutex_, deadline)) break;
  }
  notified_ = false;
}

void ExchangeThreads::Notify() {
  {
    const MutexLock lock(&mutex_);
    notified_ = true;
  }
  changed_.NotifyOne();
}

bool ExchangeThreads::Finish(Duration at_most) {
  const MonoTime deadline = SteadyNow() + at_most;
  const MutexLock lock(&mutex_);
  while (!posted_.empty() || free_ < channels_.size()) {
    if (!changed_.WaitUntil(&mutex_, deadline)) return false;
  }
  return true;
}

void ExchangeThreads::Run(ExchangeChannel& channel) {
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
      const Spending spending(channel.time(), TimeUse::kOther);
      work(channel);
    }
    mutex_.Lock();
    ++free_;
    notified_ = true;
    changed_.NotifyOne();
  }
  mutex_.Unlock();
}

}  // namespace atl
