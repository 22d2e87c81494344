#include "bench/exchange/sockets.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/errno.h"

namespace atl {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

}  // namespace

absl::StatusOr<TcpListener> TcpListen() {
  TcpListener listener{FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), ""};
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.socket.get(), any, size) != 0 || ::listen(listener.socket.get(), 64) != 0 ||
      ::getsockname(listener.socket.get(), any, &size) != 0) {
    return ErrnoToStatus(errno, "listen");
  }
  listener.address = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  return listener;
}

absl::StatusOr<FileDescriptor> TcpConnect(const std::string& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = Loopback(static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("connect to ", address));
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

absl::Status WriteAll(int socket, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::send(socket, data, bytes, MSG_NOSIGNAL);
    if (n <= 0) return ErrnoToStatus(errno, "send");
    data += n;
    bytes -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status ReadAway(int socket, size_t bytes) {
  std::vector<char> buffer(size_t{1} << 20);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, buffer.data(), std::min(bytes, buffer.size()), 0);
    if (n <= 0) return absl::UnavailableError("the other side is gone");
    bytes -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace atl
