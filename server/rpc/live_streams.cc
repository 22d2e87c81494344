#include "server/rpc/live_streams.h"

#include <algorithm>

namespace atl {

LiveStreams::LiveStreams(const Clock* clock, Duration period, size_t most)
    : clock_(clock), most_(most), watchdog_("rpc-watchdog", period, [this] { CheckAll(); }) {}

LiveStreams::~LiveStreams() { watchdog_.Stop(); }

bool LiveStreams::Add(const std::weak_ptr<LiveStream>& stream) {
  bool too_late = false;
  {
    MutexLock lock(&mutex_);
    if (!HasRoom()) return false;
    too_late = shutting_down_;
    streams_.push_back(stream);
  }
  if (!too_late) return true;
  if (const auto live = stream.lock()) live->OnShutdown();
  return true;
}

bool LiveStreams::HasRoom() {
  if (streams_.size() < most_) return true;
  // A flood of streams must not buy a look at all of them each.
  const MonoTime now = clock_->Now();
  if (found_full_at_ && now - *found_full_at_ < kLookInterval) return false;
  std::erase_if(streams_, [](const std::weak_ptr<LiveStream>& stream) { return stream.expired(); });
  found_full_at_.reset();
  if (streams_.size() < most_) return true;
  found_full_at_ = now;
  return false;
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

}  // namespace atl
