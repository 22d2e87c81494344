#ifndef ATOLL_SERVER_RPC_INTAKE_H_
#define ATOLL_SERVER_RPC_INTAKE_H_

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
#include "server/rpc/stream_census.h"

namespace atoll {

using GrpcIntake = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;

/// In place of a listening port: the server gets its connections from an Acceptor.
inline GrpcIntake AddIntake(grpc::ServerBuilder& builder,
                            std::shared_ptr<grpc::ServerCredentials> credentials) {
  // For StreamCensus, and nothing that is remembered besides.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
}

/// What counts the streams of the connections to this port.
inline CountStreams CountStreamsOf(uint16_t port) {
  return [census = std::make_shared<StreamCensus>(port)](const std::vector<std::string>& peers) {
    return census->Count(peers);
  };
}

/// What that acceptor does with each; `intake` outlives it, and its server is running.
inline Acceptor::Handover HandTo(const GrpcIntake& intake) {
  return [to = intake.get()](FileDescriptor connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.Release();
    to->HandleNewConnection(&parameters);
  };
}

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_INTAKE_H_
