#include "client/ipc/message_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace atl::ipc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeaderBytes = 8;
constexpr size_t kReadBytes = size_t{64} << 10;

/// Whether the descriptor is ready for `events` by `deadline`.
bool Await(int descriptor, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wanted = {.fd = descriptor, .events = events, .revents = 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
  }
}

/// How many bytes were sent. Fewer than all: the other end is gone, or took no more within `timeout`.
size_t SendAll(int descriptor, std::string_view bytes, std::chrono::milliseconds timeout) {
  const bool forever = timeout.count() < 0;
  const Clock::time_point deadline = Clock::now() + timeout;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(descriptor, bytes.data() + done, bytes.size() - done,
                                forever ? MSG_NOSIGNAL : MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
    } else if (errno != EINTR && (errno != EAGAIN || !Await(descriptor, POLLOUT, deadline))) {
      break;
    }
  }
  return done;
}

}  // namespace

MessageSocket::~MessageSocket() { ::close(descriptor_); }

bool MessageSocket::Send(MessageType type, std::string_view body, std::chrono::milliseconds timeout) {
  if (body.size() > kMaxMessage) return false;
  const uint32_t header[2] = {static_cast<uint32_t>(type), static_cast<uint32_t>(body.size())};
  static_assert(sizeof(header) == kHeaderBytes);
  std::string message(reinterpret_cast<const char*>(header), sizeof(header));
  message.append(body);
  const std::lock_guard<std::mutex> lock(sending_);
  if (broken_) return false;
  const size_t sent = SendAll(descriptor_, message, timeout);
  broken_ = sent > 0 && sent < message.size();
  return sent == message.size();
}

Received MessageSocket::TakeMessage(MessageType& type, std::string& body) {
  if (incoming_.size() < kHeaderBytes) return Received::kTimeout;
  uint32_t header[2];
  std::memcpy(header, incoming_.data(), sizeof(header));
  if (header[1] > kMaxMessage) return Received::kInvalid;
  if (incoming_.size() - kHeaderBytes < header[1]) return Received::kTimeout;
  type = static_cast<MessageType>(header[0]);
  body.assign(incoming_, kHeaderBytes, header[1]);
  incoming_.erase(0, kHeaderBytes + header[1]);
  return Received::kMessage;
}

Received MessageSocket::Receive(std::chrono::milliseconds timeout, MessageType& type, std::string& body) {
  const Clock::time_point deadline = Clock::now() + timeout;
  while (true) {
    const Received taken = TakeMessage(type, body);
    if (taken != Received::kTimeout) return taken;
    if (!Await(descriptor_, POLLIN, deadline)) return Received::kTimeout;
    char bytes[kReadBytes];
    const ssize_t got = ::recv(descriptor_, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Received::kClosed;
    incoming_.append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace atl::ipc
