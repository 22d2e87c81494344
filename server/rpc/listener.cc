#include "server/rpc/listener.h"

#include <chrono>
#include <mutex>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "grpc/grpc.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/server_credentials.h"

namespace atl {
namespace {

// An idle connection is pinged this often, and given up when no answer comes for that long: a peer behind a
// cable that was pulled is noticed within half a minute.
constexpr Duration kPingInterval = Seconds(20);
constexpr Duration kPingTimeout = Seconds(10);
constexpr int kMaxMetadataBytes = 16 << 10;
constexpr int kMaxFrameBytes = 1 << 20;
// A synchronous service takes a thread for each open call, and server reflection is one. Beyond so many its
// calls are refused with RESOURCE_EXHAUSTED; our own services do not need them.
constexpr int kMaxSynchronousThreads = 32;

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

absl::Status CheckExposure(const BindAddress& address, const RpcServerOptions& options) {
  const bool secured = options.security.certificates != nullptr;
  if (secured || options.exposure == Exposure::kAnyInterface || IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s can be reached from other machines, and there is no TLS: anyone who reaches the port can read and "
      "spoil the model. Give --tls-cert and --tls-key (docs/guides/security.md), "
      "listen on 127.0.0.1 and tunnel, or give --insecure-bind on a network that you trust",
      address.ToString()));
}

void SetArguments(const RpcServerOptions& options, const PortSpec& port, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes);
  if (port.quota != nullptr) builder.SetResourceQuota(*port.quota);
  // Who connects and does not say a whole HTTP/2 greeting, or TLS handshake, is sent away after this time.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(options.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(options.connection_idle));
  // A packed message is unpacked before its size is looked at: two megabytes may be two gigabytes. Chunks are
  // packed in their own way, which is bounded.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kPingInterval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPingTimeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // gRPC's own count of pings that come too often ends a connection only after it has read all that came with
  // them, and makes an error of an error for each: a burst costs the square of its pings. Without the count a
  // ping costs next to nothing, and a connection of pings alone is ended as any whose bytes bring no call.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // A certificate is looked at when a connection begins. So that no connection outlives by long what was
  // revoked or replaced meanwhile, clients are asked to make a new one; calls in progress go on to their end.
  if (options.security.certificates != nullptr) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(options.max_connection_age));
  }
}

/// Global in gRPC: every server that is built after it has them.
void EnableHealthAndReflection() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

}  // namespace

void SetQuota(const RpcServerOptions& options, grpc::ResourceQuota& quota) {
  // gRPC keeps a read buffer of megabytes for each connection that once was fast; under this bound it gives
  // those back.
  quota.Resize(options.buffer_bytes);
  quota.SetMaxThreads(kMaxSynchronousThreads);
}

absl::Status CheckListenable(const std::string& address, const RpcServerOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const BindAddress where, ParseBindAddress(address));
  ATOLL_RETURN_IF_ERROR(CheckExposure(where, options));
  return CheckBindable(where);
}

namespace {

AcceptorOptions AcceptorOptionsFor(const RpcServerOptions& options, const PortSpec& port) {
  const std::string& port_name = port.name;
  AcceptorOptions out{.limits = port.limits, .unacknowledged = kPingTimeout};
  if (options.on_connection_rejected) {
    out.on_rejected = [report = options.on_connection_rejected,
                       port_name](ConnectionLimiter::Verdict verdict) {
      report(port_name, verdict == ConnectionLimiter::Verdict::kTooMany ? "total" : "address");
    };
  }
  if (options.on_connection_rejected) {
    out.on_greedy = [report = options.on_connection_rejected, port_name](ConnectionLimiter::Of of) {
      report(port_name, of == ConnectionLimiter::Of::kBytes ? "bytes" : "streams");
    };
  }
  out.on_ended_unheard = options.on_ended_unheard;
  if (options.on_connections) {
    out.on_count = [report = options.on_connections, port_name](size_t count) { report(port_name, count); };
  }
  return out;
}

}  // namespace

absl::StatusOr<Listener> Listen(const PortSpec& port, const RpcServerOptions& options, grpc::Service* service,
                                ConnectionProgress* progress, const Clock* clock) {
  // It says more about why not than the attempt does.
  ATOLL_RETURN_IF_ERROR(CheckListenable(port.address, options));
  ATOLL_ASSIGN_OR_RETURN(const BindAddress where, ParseBindAddress(port.address));
  EnableHealthAndReflection();
  Listener listener;
  AcceptorOptions accepting = AcceptorOptionsFor(options, port);
  accepting.progress = progress;
  ATOLL_ASSIGN_OR_RETURN(listener.acceptor, Acceptor::Listen(where, std::move(accepting)));
  listener.address = listener.acceptor->address();
  grpc::ServerBuilder builder;
  SetArguments(options, port, builder);
  listener.handoff = AddConnectionHandoff(builder, ServerCredentialsFor(options.security));
  builder.RegisterService(service);
  listener.server = builder.BuildAndStart();
  if (listener.server == nullptr) {
    return absl::UnavailableError(absl::StrFormat("cannot serve on %s", where.ToString()));
  }
  listener.server->GetHealthCheckService()->SetServingStatus(port.service_name, true);
  listener.acceptor->Start(HandOffTo(listener.handoff), clock, CountStreamsOf(listener.address.port));
  return listener;
}

}  // namespace atl
