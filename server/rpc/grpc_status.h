#ifndef ATOLL_SERVER_RPC_GRPC_STATUS_H_
#define ATOLL_SERVER_RPC_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace atl {

/// A call's outcome on the wire: a refusal (server/rejection.h) becomes google.rpc.ErrorInfo and RetryInfo,
/// as docs/reference/wire_format.md ("Errors") lists them. A refusal without a retry delay whose code says
/// that the caller should come back (Unavailable, ResourceExhausted) gets one.
grpc::Status ToGrpc(const absl::Status& status);

/// The server has as many calls waiting as it holds.
absl::Status Overloaded();
/// The server has as many streams open as it holds, or as many watchers.
absl::Status TooManyStreams();
/// The server is going away; the caller should look for it again.
absl::Status GoingAway();

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_GRPC_STATUS_H_
