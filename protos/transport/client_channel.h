#ifndef ATOLL_PROTOS_TRANSPORT_CLIENT_CHANNEL_H_
#define ATOLL_PROTOS_TRANSPORT_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "protos/transport/channel_security.h"

namespace atl {

/// The only place where a program makes a channel; a style test holds that. Adds what every channel to a
/// coordinator needs to `arguments`:
///   No retries inside gRPC. Its retry filter (gRPC 1.51) aborts the process when trailers lack grpc-status,
///   which any server or proxy may send. Callers retry themselves (client/sync/retrying_connection.h).
///   No service config by DNS, which could turn on more of that code.
///   No proxy that the environment names for the web.
std::shared_ptr<grpc::Channel> CreateClientChannel(const std::string& address,
                                                   const ChannelSecurity& security,
                                                   grpc::ChannelArguments arguments);

}  // namespace atl

#endif  // ATOLL_PROTOS_TRANSPORT_CLIENT_CHANNEL_H_
