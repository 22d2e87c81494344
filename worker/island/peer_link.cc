#include "worker/island/peer_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr int kHeartbeats = 20;  // in the time after which a silent peer is lost

}  // namespace

PeerLink::PeerLink(std::unique_ptr<FrameSocket> socket, PeerLinkOptions options)
    : socket_(std::move(socket)), options_(std::move(options)), thread_([this] { Run(); }) {}

PeerLink::~PeerLink() {
  ends_ = true;
  stopped_ = true;
  thread_.Join();
}

absl::Status PeerLink::Send(FrameType type, std::string_view body) {
  {
    const MutexLock lock(&mutex_);
    if (!lost_.ok()) return lost_;
  }
  absl::Status sent = socket_->Send(type, body);
  if (!sent.ok() && !ends_ && options_.on_lost) options_.on_lost(options_.rank, sent);
  return sent;
}

absl::StatusOr<Frame> PeerLink::Next() {
  const MutexLock lock(&mutex_);
  while (frames_.empty() && lost_.ok()) changed_.Wait(&mutex_);
  if (frames_.empty()) return lost_;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

void PeerLink::AwaitEnd(Duration limit) {
  const MonoTime deadline = SteadyNow() + limit;
  const MutexLock lock(&mutex_);
  while (lost_.ok()) {
    if (!changed_.WaitUntil(&mutex_, deadline)) return;
  }
}

void PeerLink::Take(Frame frame) {
  if (frame.type == FrameType::kHeartbeat) return;
  if (frame.type == FrameType::kDrain) {
    if (options_.on_drain) options_.on_drain();
    return;
  }
  const MutexLock lock(&mutex_);
  frames_.push_back(std::move(frame));
  changed_.NotifyAll();
}

void PeerLink::Lose(const absl::Status& cause) {
  // First: a caller of Next that is told of the loss would end the worker with a goodbye to its coordinator.
  if (!ends_ && options_.on_lost) options_.on_lost(options_.rank, cause);
  const MutexLock lock(&mutex_);
  lost_ = absl::UnavailableError(
      absl::StrFormat("rank %d is lost: %s", options_.rank, std::string(cause.message())));
  changed_.NotifyAll();
}

void PeerLink::Run() {
  SetThreadName("rank-link");
  const Duration beat =
      std::clamp(options_.timeout / kHeartbeats, Duration(Seconds(0.05)), Duration(Seconds(2)));
  const auto limit = static_cast<int>(options_.timeout / beat);
  int silent = 0;
  MonoTime next = SteadyNow();
  while (!stopped_) {
    if (SteadyNow() >= next) {
      if (const absl::Status sent = socket_->Send(FrameType::kHeartbeat, ""); !sent.ok()) return Lose(sent);
      next = SteadyNow() + beat;
      ++silent;
    }
    const Duration wait = std::clamp(next - SteadyNow(), Duration(0), Duration(Seconds(0.1)));
    auto frame = socket_->Receive(wait);
    if (!frame.ok()) return Lose(frame.status());
    if (frame->has_value()) {
      silent = 0;
      Take(**std::move(frame));
    } else if (silent > limit) {
      return Lose(absl::DeadlineExceededError(absl::StrFormat(
          "its process has shown no sign of life for %g s (--rank-timeout)", ToSeconds(options_.timeout))));
    }
  }
}

}  // namespace atl
