#ifndef ATOLL_CLIENT_RPC_CALL_STATUS_H_
#define ATOLL_CLIENT_RPC_CALL_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace atl {

/// How a call to the coordinator at `address` ended, in a worker's terms (client/sync/rejection.h). For a
/// call that this side did not cancel:
///   CANCELLED becomes Unavailable: a server that shuts down cancels calls that it does not answer, and so
///   does a proxy that loses its server.
///   A code that gRPC made of an HTTP status becomes Unavailable: a web server or a proxy has answered. With
///   a status of the 400s it looks permanent.
///   An answer that breaks gRPC's protocol, for example one without a status, becomes Unavailable and looks
///   permanent.
///   UNIMPLEMENTED looks permanent: what answers there is a gRPC
///   server, but no coordinator's data port.
absl::Status StatusOfCall(const grpc::Status& status, const std::string& address);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CALL_STATUS_H_
