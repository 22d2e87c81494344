#include "common/http/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr int kBacklog = 64;

struct AddrInfoDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddrInfoPtr = std::unique_ptr<addrinfo, AddrInfoDeleter>;

uint16_t BoundPort(int socket) {
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  if (bound.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

}  // namespace

absl::StatusOr<FileDescriptor> ListenOn(BindAddress& address) {
  ATOLL_RETURN_IF_ERROR(CheckBindable(address));  // says best what is wrong
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address.ToString()));
  }
  const AddrInfoPtr list(found);
  FileDescriptor socket(
      ::socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, list->ai_protocol));
  const int on = 1;
  if (socket.valid()) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!socket.valid() || ::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("listen on ", address.ToString()));
  }
  address.port = BoundPort(socket.get());
  return socket;
}

}  // namespace atl
