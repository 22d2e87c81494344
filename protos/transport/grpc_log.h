#ifndef ATOLL_PROTOS_TRANSPORT_GRPC_LOG_H_
#define ATOLL_PROTOS_TRANSPORT_GRPC_LOG_H_

#include <functional>
#include <string_view>

#include "common/log.h"

namespace atl {

/// Hears the text of each line of gRPC's. From any thread of gRPC's; must not block, and must not call gRPC.
using GrpcLogListener = std::function<void(std::string_view text)>;

/// From now on gRPC's and protobuf's own lines go to `log`, as debug lines, at most 20 a second; those beyond
/// are dropped and counted. Without it they write to stderr in a format of their own, a line for each failed
/// handshake or invalid string, and block their threads while nobody reads it. A Logger made by the default
/// constructor drops them all. For a program's main; a second call takes the place of the first. `log` and
/// `listener` live until the program ends.
void RouteGrpcLog(const Logger& log, GrpcLogListener listener = nullptr);

}  // namespace atl

#endif  // ATOLL_PROTOS_TRANSPORT_GRPC_LOG_H_
