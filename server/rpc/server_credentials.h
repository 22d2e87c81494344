#ifndef ATOLL_SERVER_RPC_SERVER_CREDENTIALS_H_
#define ATOLL_SERVER_RPC_SERVER_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/rpc/server_options.h"

namespace atl {

/// How a port shakes hands: plain text, or TLS with certificates that follow their files, for every
/// connection that begins after they changed.
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsFor(const RpcSecurity& security);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_SERVER_CREDENTIALS_H_
