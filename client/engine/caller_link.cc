#include "client/engine/caller_link.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace atl {
namespace {

/// How often the engine looks whether the caller lives. A child of the caller may hold the socket open after
/// it.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

CallerLink::CallerLink(ipc::MessageSocket* socket, int64_t caller, CallerRequests requests)
    : socket_(socket), caller_(caller), requests_(std::move(requests)) {
  listener_ = Thread([this] { Listen(); });
}

CallerLink::~CallerLink() {
  closing_ = true;
  listener_.Join();
}

void CallerLink::Listen() {
  SetThreadName("caller");
  while (!closing_) {
    ipc::MessageType type{};
    std::string body;
    const ipc::Received received = socket_->Receive(kLook, type, body);
    if (received == ipc::Received::kTimeout && ::getppid() == caller_) continue;
    if (received == ipc::Received::kMessage && Take(type, body)) continue;
    // The stop comes first: an event that is given up without one would look like a failure of the worker.
    requests_.gone();
    GiveUp();
    return;
  }
}

bool CallerLink::Take(ipc::MessageType type, const std::string& body) {
  switch (type) {
    case ipc::MessageType::kDrain:
      requests_.drain();
      return true;
    case ipc::MessageType::kStop:
      GiveUp();
      requests_.stop();
      return true;
    case ipc::MessageType::kAnswer: {
      auto answer = ipc::DecodeAnswer(body);
      if (!answer.has_value()) return false;
      const MutexLock lock(&mutex_);
      // One to an event that is not waited for any more is late.
      if (answer->sequence != sequence_) return true;
      answer_ = *std::move(answer);
      changed_.NotifyAll();
      return true;
    }
    default:
      return false;
  }
}

absl::StatusOr<ipc::Answer> CallerLink::Ask(ipc::Event event) {
  {
    const MutexLock lock(&mutex_);
    if (given_up_) return absl::CancelledError("the caller stops");
    event.sequence = ++sequence_;
    answer_.reset();
  }
  if (!socket_->Send(ipc::MessageType::kEvent, ipc::Encode(event)))
    return absl::CancelledError("the caller is gone");
  MutexLock lock(&mutex_);
  while (!answer_.has_value() && !given_up_) changed_.Wait(&mutex_);
  if (!answer_.has_value()) return absl::CancelledError("the caller stops");
  return *std::exchange(answer_, std::nullopt);
}

void CallerLink::Tell(ipc::Event event) {
  {
    const MutexLock lock(&mutex_);
    event.sequence = ++sequence_;
  }
  static_cast<void>(socket_->Send(ipc::MessageType::kEvent, ipc::Encode(event)));
}

void CallerLink::GiveUp() {
  const MutexLock lock(&mutex_);
  given_up_ = true;
  changed_.NotifyAll();
}

}  // namespace atl
