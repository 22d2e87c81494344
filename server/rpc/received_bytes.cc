#include "server/rpc/received_bytes.h"

// The kernel's tcp_info is longer than the C library's, and both cannot be included into one file.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace atl {

uint64_t ReceivedBytes(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  const bool told = size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
  return told ? info.tcpi_bytes_received : 0;
}

}  // namespace atl
