#include "protos/transport/client_channel.h"

#include "grpcpp/create_channel.h"

namespace atl {

std::shared_ptr<grpc::Channel> CreateClientChannel(const std::string& address,
                                                   const ChannelSecurity& security,
                                                   grpc::ChannelArguments arguments) {
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  security.SetArguments(arguments);
  return grpc::CreateCustomChannel(address, security.credentials(), arguments);
}

}  // namespace atl
