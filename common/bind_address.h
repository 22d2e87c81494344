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

/// InvalidArgument, naming the text and the form that is wanted, when there is no host or no port.
absl::StatusOr<BindAddress> ParseBindAddress(std::string_view text);

/// Only processes on this machine can reach it: 127.0.0.0/8, ::1, localhost.
bool IsLoopback(const BindAddress& address);

/// An error about `address`, which the command-line option `option` ("--listen") gave: the same with the
/// option's name, and when the address is in use (Unavailable), with one on the same host that is free now.
absl::Status NameOption(const absl::Status& status, std::string_view option, std::string_view address);

/// Whether a socket could listen there now. Unavailable: somebody else does; PermissionDenied,
/// InvalidArgument (a host that is not this machine's, not an address): each says what to do. Tells nothing
/// of port 0.
absl::Status CheckBindable(const BindAddress& address);

}  // namespace atl

#endif  // ATOLL_COMMON_BIND_ADDRESS_H_
