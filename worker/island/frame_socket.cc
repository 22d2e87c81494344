#include "worker/island/frame_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/bind_address.h"
#include "common/errno.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kHeaderBytes = 5;  // length:u32, type:u8

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

/// Whether the descriptor is ready for `events` within `patience`.
bool Ready(int fd, short events, Duration patience) {
  pollfd one = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&one, 1, Milliseconds(patience)) > 0;
}

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

absl::Status Resolve(const std::string& host, uint16_t port, Addresses& addresses) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses.first);
  if (failed == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot look up ", host, ": ", ::gai_strerror(failed)));
}

FileDescriptor Socket(int family) {
  return FileDescriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

absl::StatusOr<FileDescriptor> ConnectTo(const addrinfo& address, const std::string& place,
                                         Duration patience) {
  FileDescriptor fd = Socket(address.ai_family);
  if (!fd.valid()) return ErrnoToStatus(errno, "opening a socket");
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) {
    return ErrnoToStatus(errno, absl::StrCat("connecting to ", place));
  }
  if (!Ready(fd.get(), POLLOUT, patience)) {
    return absl::DeadlineExceededError(absl::StrCat(place, " does not answer"));
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return ErrnoToStatus(error, absl::StrCat("connecting to ", place));
  return fd;
}

std::string NumericHost(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host = {};
  ::getnameinfo(address, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return host.data();
}

uint16_t PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

FileDescriptor ListenOn(const sockaddr* address, socklen_t size, int family) {
  FileDescriptor fd = Socket(family);
  if (!fd.valid() || ::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) return {};
  return fd;
}

}  // namespace

absl::Status CheckHostName(const std::string& host) {
  Addresses addresses;
  return Resolve(host, /*port=*/0, addresses);
}

FrameSocket::FrameSocket(FileDescriptor fd, Duration timeout) : fd_(std::move(fd)) {
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Reads wait in poll; writes wait in the kernel, so that a frame is written whole.
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  ::fcntl(fd_.get(), F_SETFL, flags & ~O_NONBLOCK);
  const long milliseconds = Milliseconds(timeout);  // of timeval
  const timeval limit = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

absl::StatusOr<std::unique_ptr<FrameSocket>> FrameSocket::Connect(const std::string& host, uint16_t port,
                                                                  Duration patience, Duration timeout) {
  Addresses addresses;
  ATOLL_RETURN_IF_ERROR(Resolve(host, port, addresses));
  const std::string place = absl::StrCat(host, ":", port);
  absl::Status last = absl::UnavailableError(absl::StrCat(host, " has no address"));
  for (const addrinfo* one = addresses.first; one != nullptr; one = one->ai_next) {
    auto fd = ConnectTo(*one, place, patience);
    if (fd.ok()) return std::make_unique<FrameSocket>(*std::move(fd), timeout);
    last = fd.status();
  }
  return absl::IsDeadlineExceeded(last) ? last : absl::UnavailableError(last.message());
}

absl::Status FrameSocket::Send(FrameType type, std::string_view body) {
  const auto length = static_cast<uint32_t>(body.size());
  std::string bytes(kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes[4] = static_cast<char>(type);
  bytes.append(body);
  const MutexLock lock(&mutex_);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t written = ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return absl::UnavailableError("it reads nothing");
    }
    if (written <= 0) return absl::UnavailableError("the connection has ended");
    sent += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

std::optional<Frame> FrameSocket::TakeFrame(absl::Status& broken) {
  if (received_.size() < kHeaderBytes) return std::nullopt;
  uint32_t length = 0;
  std::memcpy(&length, received_.data(), sizeof(length));
  const auto type = static_cast<uint8_t>(received_[4]);
  if (length > kMaxFrameBytes || type < 1 || type > static_cast<uint8_t>(FrameType::kDrain)) {
    broken = absl::InvalidArgumentError("what it sends is no frame of an island");
    return std::nullopt;
  }
  if (received_.size() < kHeaderBytes + length) return std::nullopt;
  Frame frame{.type = static_cast<FrameType>(type), .body = received_.substr(kHeaderBytes, length)};
  received_.erase(0, kHeaderBytes + length);
  return frame;
}

absl::StatusOr<std::optional<Frame>> FrameSocket::Receive(Duration patience) {
  const MonoTime deadline = SteadyNow() + patience;
  while (true) {
    absl::Status broken;
    std::optional<Frame> frame = TakeFrame(broken);
    if (!broken.ok()) return broken;
    if (frame.has_value()) return frame;
    const Duration left = deadline - SteadyNow();
    if (!Ready(fd_.get(), POLLIN, std::max(left, Duration(0)))) {
      if (left <= Duration(0)) return std::optional<Frame>();
      continue;
    }
    std::array<char, 65536> bytes;
    const ssize_t read = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return absl::UnavailableError("the connection has ended");
    received_.append(bytes.data(), static_cast<size_t>(read));
  }
}

std::string FrameSocket::local_address() const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return NumericHost(reinterpret_cast<sockaddr*>(&address), size);
}

bool FrameSocket::within_host() const {
  const std::string own = local_address();
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  // Debian's 127.0.1.1 is reached from 127.0.0.1.
  return IsLoopback({.host = own}) || own == NumericHost(reinterpret_cast<sockaddr*>(&address), size);
}

absl::StatusOr<std::unique_ptr<FrameListener>> FrameListener::Listen(const std::string& host) {
  Addresses addresses;
  ATOLL_RETURN_IF_ERROR(Resolve(host, 0, addresses));
  FileDescriptor fd;
  const bool for_this_machine = IsLoopback({.host = host});
  for (const addrinfo* one = addresses.first; one != nullptr && !fd.valid(); one = one->ai_next) {
    if (!for_this_machine && IsLoopback({.host = NumericHost(one->ai_addr, one->ai_addrlen)})) continue;
    fd = ListenOn(one->ai_addr, one->ai_addrlen, one->ai_family);
  }
  if (!fd.valid()) {
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    fd = ListenOn(reinterpret_cast<const sockaddr*>(&any), sizeof(any), AF_INET);
  }
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("listening for the other ranks on ", host));
  const uint16_t port = PortOf(fd.get());
  return std::make_unique<FrameListener>(std::move(fd), port);
}

absl::StatusOr<std::unique_ptr<FrameSocket>> FrameListener::Accept(Duration patience, Duration timeout) {
  if (!Ready(fd_.get(), POLLIN, patience)) return nullptr;
  FileDescriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return nullptr;  // it has gone again
  return std::make_unique<FrameSocket>(std::move(fd), timeout);
}

}  // namespace atl
