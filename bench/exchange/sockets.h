#ifndef ATOLL_BENCH_EXCHANGE_SOCKETS_H_
#define ATOLL_BENCH_EXCHANGE_SOCKETS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

// Plain TCP on this machine, blocking.

namespace atl {

struct TcpListener {
  FileDescriptor socket;
  std::string address;  // 127.0.0.1:PORT
};
absl::StatusOr<TcpListener> TcpListen();
absl::StatusOr<FileDescriptor> TcpConnect(const std::string& address);
absl::Status WriteAll(int socket, const char* data, size_t bytes);
/// Reads and forgets.
absl::Status ReadAway(int socket, size_t bytes);

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_SOCKETS_H_
