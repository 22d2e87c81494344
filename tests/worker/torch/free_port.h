#ifndef ATOLL_TESTS_WORKER_TORCH_FREE_PORT_H_
#define ATOLL_TESTS_WORKER_TORCH_FREE_PORT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace atl::testing {

/// A port of 127.0.0.1 that nobody listens on; for c10d's store, which cannot choose one itself.
inline uint16_t FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  // Port 0, which nobody can have taken.
  (void)::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_TORCH_FREE_PORT_H_
