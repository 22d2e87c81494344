#include "common/bind_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/errno.h"
#include "common/file_descriptor.h"

namespace atl {
namespace {

// The ports of a run are adjacent, so choose an alternative away from them.
constexpr int kPortStep = 10;

absl::Status NotAnAddress(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is not an address to listen on; write HOST:PORT, for example 127.0.0.1:7600 or "
                      "[::1]:7600 (port 0: any free one)",
                      std::string(text)));
}

struct AddrInfoDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddrInfoPtr = std::unique_ptr<addrinfo, AddrInfoDeleter>;

absl::Status CannotListen(const BindAddress& address, int error_number) {
  const std::string where = address.ToString();
  if (error_number == EADDRINUSE) {
    return absl::UnavailableError(
        absl::StrFormat("%s is in use by another process, perhaps another coordinator; stop that process, or "
                        "use another port (port 0: any free port)",
                        where));
  }
  if (error_number == EADDRNOTAVAIL) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot listen on %s: this machine has no such address", where));
  }
  return ErrnoToStatus(error_number, absl::StrCat("listen on ", where));
}

}  // namespace

std::string BindAddress::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return absl::StrCat(ipv6 ? "[" : "", host, ipv6 ? "]" : "", ":", port);
}

absl::StatusOr<BindAddress> ParseBindAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return NotAnAddress(text);
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return NotAnAddress(text);  // IPv6 without brackets: its end is ambiguous
  }
  uint32_t port = 0;
  if (host.empty() || host.find_first_of("[]") != std::string_view::npos ||
      !absl::SimpleAtoi(std::string(text.substr(colon + 1)), &port) || port > UINT16_MAX) {
    return NotAnAddress(text);
  }
  return BindAddress{std::string(host), static_cast<uint16_t>(port)};
}

bool IsLoopback(const BindAddress& address) {
  if (address.host == "localhost") return true;
  in_addr v4 = {};
  if (::inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  return ::inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status NameOption(const absl::Status& status, std::string_view option, std::string_view address) {
  if (status.ok()) return status;
  std::string message = absl::StrCat(std::string(option), ": ", std::string(status.message()));
  const auto where = ParseBindAddress(address);
  if (absl::IsUnavailable(status) && where.ok()) {
    for (int port = where->port + kPortStep; port <= UINT16_MAX; port += kPortStep) {
      const BindAddress other{where->host, static_cast<uint16_t>(port)};
      if (!CheckBindable(other).ok()) continue;
      absl::StrAppend(&message, "; this one is free: ", std::string(option), " ", other.ToString());
      break;
    }
  }
  return {status.code(), message};
}

absl::Status CheckBindable(const BindAddress& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int resolved =
      ::getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (resolved != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot listen on %s: '%s' is not an address of this machine (%s)",
                        address.ToString(), address.host, ::gai_strerror(resolved)));
  }
  const AddrInfoPtr list(found);
  const FileDescriptor probe(::socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol));
  if (!probe.valid()) return CannotListen(address, errno);
  // Set this option as a server does, so that connections in TIME_WAIT do not count as listeners.
  const int on = 1;
  ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(probe.get(), list->ai_addr, list->ai_addrlen) != 0 || ::listen(probe.get(), 1) != 0) {
    return CannotListen(address, errno);
  }
  return absl::OkStatus();
}

}  // namespace atl
