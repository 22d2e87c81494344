#include "server/rpc/server.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "common/status.h"
#include "grpcpp/health_check_service_interface.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/coordinator_service.h"
#include "server/rpc/listener.h"

namespace atl {
namespace {

std::string TokenWarning(ClientCertificates wanted) {
  if (wanted != ClientCertificates::kRequired) return "";
  return "this coordinator requires a client certificate on its two ports, where a token alone does not "
         "work: "
         "use it beside a certificate, or start the coordinator with --tls-client-auth optional";
}

}  // namespace

struct RpcServer::Parts {
  Parts(const RpcServerOptions& rpc_options, Coordinator* coordinator, const Clock* clock, Logger logger)
      : options(rpc_options),
        log(std::move(logger)),
        calls({.name = "rpc-call", .threads = options.call_threads, .max_queued = options.max_waiting_calls}),
        uploads({.name = "rpc-upload",
                 .threads = options.upload_threads,
                 .max_queued = options.max_waiting_calls}),
        syncs({.name = "rpc-sync", .threads = options.sync_threads, .max_queued = options.max_waiting_calls}),
        admin_calls(
            {.name = "rpc-admin", .threads = options.admin_threads, .max_queued = options.max_waiting_calls}),
        streams(clock, options.watchdog_period, options.max_streams),
        watchers(options.max_watchers),
        observer_pulls(options.max_observer_pulls),
        context{.coordinator = coordinator,
                .clock = clock,
                .calls = &calls,
                .uploads = &uploads,
                .syncs = &syncs,
                .admin = &admin_calls,
                .streams = &streams,
                .heads = &heads,
                .access = options.security.access,
                .tokens = options.security.tokens,
                .security_warning = options.security.warning,
                .token_warning = TokenWarning(options.security.client_certificates),
                .watchers = &watchers,
                .observer_pulls = &observer_pulls,
                .progress = &progress,
                .open_unary = &open_unary,
                .stall_limit = options.stall_limit,
                .max_watch_backlog = options.max_watch_backlog,
                .on_pull_streamed = options.on_pull_streamed,
                .on_heartbeat = options.on_heartbeat,
                .on_call_rejected = options.on_call_rejected,
                .on_call_denied = options.on_call_denied},
        coordinator_service(context),
        admin_service(context) {}

  const RpcServerOptions options;
  const Logger log;
  IoPool calls;
  IoPool uploads;
  IoPool syncs;
  IoPool admin_calls;
  FragmentHeads heads;
  LiveStreams streams;
  ConcurrencyLimit watchers;
  ConcurrencyLimit observer_pulls;
  ConnectionProgress progress;
  std::atomic<int64_t> open_unary{0};
  const CallContext context;
  CoordinatorService coordinator_service;
  AdminService admin_service;
  grpc::ResourceQuota quota{"atoll"};
  // Above: everything that calls in progress use. Below: what calls come from.
  Listener data;
  Listener admin;
  std::string data_address;
  std::string admin_address;
};

absl::Status RpcServer::CheckAddress(const std::string& address, const RpcServerOptions& options) {
  return CheckListenable(address, options);
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            Coordinator* coordinator, const Clock* clock,
                                                            const Logger& log) {
  if (options.security.certificates != nullptr && options.security.access == nullptr) {
    return absl::InvalidArgumentError("TLS without a policy would let everybody in, encrypted");
  }
  auto parts = std::make_unique<Parts>(options, coordinator, clock, log.With("component", "rpc"));
  Parts& p = *parts;
  std::unique_ptr<RpcServer> server(new RpcServer(std::move(parts)));
  SetQuota(options, p.quota);
  ATOLL_ASSIGN_OR_RETURN(p.data, Listen({.address = options.data_address,
                                         .name = "data",
                                         .service_name = v1::Coordinator::service_full_name(),
                                         .limits = options.connections,
                                         .quota = &p.quota},
                                        options, &p.coordinator_service, &p.progress, clock));
  ATOLL_ASSIGN_OR_RETURN(p.admin, Listen({.address = options.admin_address,
                                          .name = "admin",
                                          .service_name = v1::Admin::service_full_name(),
                                          .limits = options.admin_connections,
                                          .quota = &p.quota},
                                         options, &p.admin_service, &p.progress, clock));
  p.data_address = p.data.address.ToString();
  p.admin_address = p.admin.address.ToString();
  p.log.Info("serving", {{"data", p.data_address},
                         {"admin", p.admin_address},
                         {"transport", options.security.certificates == nullptr ? "plain text" : "TLS"}});
  return server;
}

RpcServer::RpcServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RpcServer::~RpcServer() { Shutdown(); }

const std::string& RpcServer::data_address() const { return parts_->data_address; }
const std::string& RpcServer::admin_address() const { return parts_->admin_address; }

void RpcServer::SetNotServing() {
  for (Listener* listener : {&parts_->data, &parts_->admin}) {
    if (listener->server) listener->server->GetHealthCheckService()->SetServingStatus(false);
  }
}

void RpcServer::AwaitCalls(MonoTime deadline) const {
  constexpr auto kLook = std::chrono::milliseconds(5);
  constexpr auto kToSend = std::chrono::milliseconds(50);  // of the last answers, by gRPC's threads
  const auto open = [this] { return parts_->open_unary > 0 || parts_->streams.size() > 0; };
  while (open() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kLook);
  std::this_thread::sleep_for(kToSend);
}

void RpcServer::Shutdown() {
  if (!parts_->data.server) return;
  SetNotServing();
  parts_->streams.Shutdown();
  const Duration grace = parts_->options.shutdown_grace;
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(grace);
  const auto ports = {&parts_->data, &parts_->admin};
  for (Listener* listener : ports) {
    if (listener->acceptor) listener->acceptor->Stop();
  }
  AwaitCalls(std::chrono::steady_clock::now() + grace);
  for (Listener* listener : ports) {
    // gRPC tells its clients that it goes, and waits until they hang up. A client without a call does not
    // listen: the server would wait for its next call, which it then cancels without a word of why.
    if (listener->acceptor) listener->acceptor->EndConnections();
    // Calls that are still there at the deadline are cancelled; all of them end.
    if (listener->server) listener->server->Shutdown(deadline);
  }
  parts_->data.server.reset();
  parts_->admin.server.reset();
  parts_->uploads.Stop();
  parts_->syncs.Stop();  // after what hands over to it
  parts_->admin_calls.Stop();
  parts_->calls.Stop();
}

}  // namespace atl
