#ifndef ATOLL_COMMON_HTTP_LISTEN_SOCKET_H_
#define ATOLL_COMMON_HTTP_LISTEN_SOCKET_H_

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/file_descriptor.h"

namespace atl {

/// Opens a non-blocking TCP socket that listens on `address`. Replaces port 0 by the port that the system
/// chose. Errors as CheckBindable.
absl::StatusOr<FileDescriptor> ListenOn(BindAddress& address);

}  // namespace atl

#endif  // ATOLL_COMMON_HTTP_LISTEN_SOCKET_H_
