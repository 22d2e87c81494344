#ifndef ATOLL_SERVER_RPC_INTAKE_H_
#define ATOLL_SERVER_RPC_INTAKE_H_

#include <memory>
#include <utility>

#include "common/file_descriptor.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/acceptor.h"

namespace atoll {

using GrpcIntake = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;

/// In place of a listening port: the server gets its connections from an Acceptor.
inline GrpcIntake AddIntake(grpc::ServerBuilder& builder,
                            std::shared_ptr<grpc::ServerCredentials> credentials) {
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
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
