#include "server/rpc/live_streams.h"

#include <algorithm>

namespace atoll {

LiveStreams::LiveStreams(const Clock* clock, Duration period)
    : clock_(clock), watchdog_("rpc-watchdog", period, [this] { CheckAll(); }) {}

LiveStreams::~LiveStreams() { watchdog_.Stop(); }

void LiveStreams::Add(const std::weak_ptr<LiveStream>& stream) {
  bool too_late = false;
  {
    MutexLock lock(&mutex_);
    too_late = shutting_down_;
    streams_.push_back(stream);
  }
  if (!too_late) return;
  if (const auto live = stream.lock()) live->OnShutdown();
}

void LiveStreams::CheckAll() {
  const MonoTime now = clock_->Now();
  for (const auto& stream : Live()) stream->CheckProgress(now);
}

void LiveStreams::Shutdown() {
  {
    MutexLock lock(&mutex_);
    shutting_down_ = true;
  }
  for (const auto& stream : Live()) stream->OnShutdown();
}

size_t LiveStreams::size() const {
  MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(streams_.begin(), streams_.end(), [](const auto& stream) { return !stream.expired(); }));
}

std::vector<std::shared_ptr<LiveStream>> LiveStreams::Live() {
  std::vector<std::shared_ptr<LiveStream>> live;
  MutexLock lock(&mutex_);
  std::erase_if(streams_, [&](const std::weak_ptr<LiveStream>& stream) {
    auto strong = stream.lock();
    if (strong == nullptr) return true;
    live.push_back(std::move(strong));
    return false;
  });
  return live;
}

}  // namespace atoll
