#ifndef ATOLL_CLIENT_RPC_CALL_STATUS_H_
#define ATOLL_CLIENT_RPC_CALL_STATUS_H_

#include <string>
#include <string_view>

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

/// gRPC's text for a connection that was not made, without its own terms: "Connection refused" instead of
/// "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:7600: Failed to connect to remote
/// host: Connection refused". Other texts stay as they are.
std::string WithoutGrpcTerms(std::string_view text);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CALL_STATUS_H_
