#ifndef ATOLL_COMMON_BIND_ADDRESS_H_
#define ATOLL_COMMON_BIND_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace atl {

/// Where a server listens: "127.0.0.1:7600", "[::1]:0", "localhost:7600". Port 0: the system chooses one.
struct BindAddress {
  std::string host;  // without brackets
  uint16_t port = 0;

  /// With brackets round an IPv6 host.
  std::string ToString() const;
};

/// InvalidArgument if the host or the port is missing; the message names the text and the expected form.
absl::StatusOr<BindAddress> ParseBindAddress(std::string_view text);

/// Only processes on this machine can reach it: 127.0.0.0/8, ::1, localhost.
bool IsLoopback(const BindAddress& address);

/// Adds the name of the command-line option ("--listen") to an error about `address`. If the address is in
/// use (Unavailable), also adds a free address on the same host.
absl::Status NameOption(const absl::Status& status, std::string_view option, std::string_view address);

/// Checks whether a socket can listen there now. Unavailable: another process does. PermissionDenied;
/// InvalidArgument: not an address, or not one of this machine. Each message says what to do. Always OK for
/// port 0.
absl::Status CheckBindable(const BindAddress& address);

}  // namespace atl

#endif  // ATOLL_COMMON_BIND_ADDRESS_H_
