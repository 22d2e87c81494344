#ifndef ATOLL_COMMON_HTTP_LISTEN_SOCKET_H_
#define ATOLL_COMMON_HTTP_LISTEN_SOCKET_H_

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/file_descriptor.h"

namespace atl {

/// A TCP socket that listens there, not blocking; a port 0 in `address` becomes the one that the system
/// chose. Errors as CheckBindable.
absl::StatusOr<FileDescriptor> ListenOn(BindAddress& address);

}  // namespace atl

#endif  // ATOLL_COMMON_HTTP_LISTEN_SOCKET_H_
