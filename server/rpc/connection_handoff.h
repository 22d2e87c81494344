#ifndef ATOLL_SERVER_RPC_CONNECTION_HANDOFF_H_
#define ATOLL_SERVER_RPC_CONNECTION_HANDOFF_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "grpc/grpc.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/stream_counter.h"

namespace atl {

using ConnectionHandoff = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;

/// In place of a listening port: the server gets its connections from an Acceptor.
inline ConnectionHandoff AddConnectionHandoff(grpc::ServerBuilder& builder,
                                              std::shared_ptr<grpc::ServerCredentials> credentials) {
  // For StreamCounter, and nothing that is remembered besides.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
}

/// What counts the streams of the connections to this port.
inline CountStreams CountStreamsOf(uint16_t port) {
  return [counter = std::make_shared<StreamCounter>(port)](const std::vector<std::string>& peers) {
    return counter->Count(peers);
  };
}

/// What that acceptor does with each; `handoff` outlives it, and its server is running.
inline Acceptor::Handoff HandOffTo(const ConnectionHandoff& handoff) {
  return [to = handoff.get()](FileDescriptor connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.Release();
    to->HandleNewConnection(&parameters);
  };
}

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_CONNECTION_HANDOFF_H_
