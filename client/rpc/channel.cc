#include "client/rpc/channel.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "grpcpp/support/channel_arguments.h"
#include "protos/transport/client_channel.h"

namespace atl {
namespace {

constexpr int kMaxMessageBytes = 2 << 20;
constexpr int kHttp2FrameBytes = 1 << 20;
constexpr int kHttp2LookaheadBytes = 16 << 20;

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

absl::Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  const bool has_port = colon != std::string::npos && colon > 0 &&
                        absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 1 && port <= 65535;
  const std::string host = address.substr(0, has_port ? colon : 0);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_port && (bracketed || host.find_first_of(":/[] ") == std::string::npos)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "'%s' is not an address: expected HOST:PORT, for example 127.0.0.1:7600 or [::1]:7600", address));
}

std::shared_ptr<grpc::Channel> MakeChannel(const ChannelOptions& options) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive));
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  args.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, Milliseconds(options.reconnect_initial));
  // Despite its name, how long one attempt may take: a busy machine needs seconds for a handshake.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(options.connect_timeout));
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.reconnect_maximum));
  args.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttp2FrameBytes);
  // Long thin links: let the sender keep this much under way.
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kHttp2LookaheadBytes);
  // Channels with equal arguments share one connection otherwise, and a large transfer would delay
  // heartbeats.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (options.security == nullptr) {
    return CreateClientChannel(options.address, *ChannelSecurity::Plain(), args);
  }
  return CreateClientChannel(options.address, *options.security, args);
}

}  // namespace atl
