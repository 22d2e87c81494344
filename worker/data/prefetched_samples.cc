#include "worker/data/prefetched_samples.h"

#include <utility>

namespace atl {

PrefetchedSamples::PrefetchedSamples(TrainingSamples samples)
    : samples_(std::move(samples)), thread_([this] { Run(); }) {}

PrefetchedSamples::~PrefetchedSamples() {
  {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.Join();
}

absl::Status PrefetchedSamples::Read(uint64_t position, uint32_t sequences, Batch& batch,
                                     std::optional<uint64_t> next) {
  const Wanted now{position, sequences};
  const MutexLock lock(&mutex_);
  // What is being read may be this batch.
  while (reading_) changed_.Wait(&mutex_);
  if (ready_ != now) {
    wanted_ = now;
    ready_.reset();
    changed_.NotifyAll();
    while (ready_ != now) changed_.Wait(&mutex_);
  }
  const absl::Status status = status_;
  std::swap(batch, batch_);
  ready_.reset();
  if (!status.ok()) return status;
  wanted_ = Wanted{next.value_or(position + sequences), sequences};
  changed_.NotifyAll();
  return status;
}

void PrefetchedSamples::Run() {
  SetThreadName("read-samples");
  while (true) {
    Wanted next;
    {
      const MutexLock lock(&mutex_);
      while (!stopped_ && !wanted_) changed_.Wait(&mutex_);
      if (stopped_) return;
      next = *std::exchange(wanted_, std::nullopt);
      reading_ = true;
    }
    const absl::Status status = samples_.Read(next.position, next.sequences, batch_);
    const MutexLock lock(&mutex_);
    reading_ = false;
    ready_ = next;
    status_ = status;
    changed_.NotifyAll();
  }
}

}  // namespace atl
