#ifndef ATOLL_CLIENT_RPC_CHANNEL_H_
#define ATOLL_CLIENT_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "grpcpp/channel.h"
#include "protos/transport/channel_security.h"

namespace atl {

struct ChannelOptions {
  std::string address;  // host:port
  Duration keepalive = Seconds(20);
  Duration keepalive_timeout = Seconds(20);
  Duration connect_timeout = Seconds(5);  // of one attempt
  Duration reconnect_initial = Seconds(0.2);
  Duration reconnect_maximum = Seconds(2);  // between attempts, while somebody asks
  std::shared_ptr<const ChannelSecurity> security =
      nullptr;  // null: plain text; lives as long as the channel
};

/// InvalidArgument when `address` is not host:port ("127.0.0.1:7600", "[::1]:7600",
/// "coordinator.example:7600").
absl::Status CheckAddress(const std::string& address);

/// A channel with a connection of its own, which is made when it is first used, and again whenever it broke.
std::shared_ptr<grpc::Channel> MakeChannel(const ChannelOptions& options);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CHANNEL_H_
