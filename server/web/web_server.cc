#include "server/web/web_server.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/http/listen_socket.h"
#include "common/periodic_task.h"
#include "common/status.h"
#include "server/rpc/io_pool.h"
#include "server/web/api.h"
#include "server/web/run_history.h"

namespace atl {
namespace {

constexpr uint64_t kLargestPem = uint64_t{1} << 20;

absl::StatusOr<std::optional<WebTls>> ReadTls(const WebServerOptions& options) {
  if (options.certificate_file.empty() && options.key_file.empty()) return std::optional<WebTls>();
  WebTls tls;
  ATOLL_ASSIGN_OR_RETURN(tls.certificate, ReadFile(options.certificate_file, kLargestPem));
  ATOLL_ASSIGN_OR_RETURN(tls.key, ReadFile(options.key_file, kLargestPem));
  return std::optional<WebTls>(std::move(tls));
}

}  // namespace

struct WebServer::Parts {
  Parts(const WebServerOptions& web_options, Coordinator* coordinator, const Clock* the_clock, Logger logger)
      : options(web_options),
        clock(the_clock),
        log(std::move(logger)),
        history(coordinator, clock),
        api({.access = options.access,
             .names = options.names,
             .token_hint = options.token_hint,
             .on_denied = options.on_denied},
            coordinator, clock, &history),
        pool({.name = "web", .threads = options.threads, .max_queued = options.max_waiting}),
        connections(clock) {}

  absl::StatusOr<std::unique_ptr<HttpDaemon>> StartDaemon();
  void Tick();
  void RenewTls();
  void EndRetired();

  const WebServerOptions options;
  const Clock* const clock;
  const Logger log;
  RunHistory history;
  WebApi api;
  IoPool pool;
  ConnectionTable connections;
  BindAddress address;
  FileDescriptor listener;
  std::optional<WebTls> tls;
  MonoTime looked{};
  std::string tls_error;
  std::unique_ptr<HttpDaemon> daemon;
  /// Those that still serve with an older certificate, until their connections are done.
  std::vector<std::pair<MonoTime, std::unique_ptr<HttpDaemon>>> retired;
  std::unique_ptr<PeriodicTask> ticks;
};

absl::StatusOr<std::unique_ptr<HttpDaemon>> WebServer::Parts::StartDaemon() {
  return HttpDaemon::Start(listener, tls, options.limits,
                           {.answer = [this](const WebRequest& request) { return api.Answer(request); },
                            .is_quick = &WebApi::IsQuick,
                            .post = [this](std::function<void()> task) { return pool.Post(std::move(task)); },
                            .connections = &connections});
}

void WebServer::Parts::Tick() {
  history.Follow();
  connections.EndSilentConnections(options.timeout);
  EndRetired();
  if (tls && clock->Now() - looked >= options.look_at_files) RenewTls();
}

void WebServer::Parts::RenewTls() {
  looked = clock->Now();
  auto now = ReadTls(options);
  if (now.ok() && *now == tls) return;
  // Half of a pair may be new; then the next look finds the other half.
  std::optional<WebTls> before = tls;
  absl::Status problem = now.status();
  if (now.ok()) {
    tls = *std::move(now);
    auto renewed = StartDaemon();
    problem = renewed.status();
    if (renewed.ok()) {
      daemon->StopListening();
      retired.emplace_back(looked, std::exchange(daemon, *std::move(renewed)));
      log.Info("the web page uses a new certificate");
    } else {
      tls = std::move(before);
    }
  }
  if (!problem.ok() && problem.message() != tls_error) {
    log.Warning("the web page keeps its old certificate: the new one is unusable", {{"error", problem}});
  }
  tls_error = std::string(problem.message());
}

void WebServer::Parts::EndRetired() {
  const MonoTime now = clock->Now();
  std::erase_if(retired, [&](const auto& old) {
    return now - old.first > options.timeout && old.second->working() == 0;
  });
}

absl::Status WebServer::CheckAddress(const WebServerOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const BindAddress address, ParseBindAddress(options.address));
  if (options.exposure == Exposure::kLoopbackOnly && options.certificate_file.empty() &&
      !IsLoopback(address)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("other machines can reach the web page on %s without TLS, so anyone on the network "
                        "path can read an operator's token. Listen on 127.0.0.1 and use a tunnel, give a "
                        "certificate, or use --insecure-bind on a network that you trust",
                        address.ToString()));
  }
  return CheckBindable(address);
}

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const WebServerOptions& options,
                                                            Coordinator* coordinator, const Clock* clock,
                                                            const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CheckAddress(options));
  ATOLL_ASSIGN_OR_RETURN(BindAddress address, ParseBindAddress(options.address));
  ATOLL_ASSIGN_OR_RETURN(std::optional<WebTls> tls, ReadTls(options));
  ATOLL_ASSIGN_OR_RETURN(FileDescriptor listener, ListenOn(address));
  auto parts = std::make_unique<Parts>(options, coordinator, clock, log.With("component", "web"));
  Parts& p = *parts;
  p.address = address;
  p.listener = std::move(listener);
  p.tls = std::move(tls);
  p.looked = clock->Now();
  std::unique_ptr<WebServer> server(new WebServer(std::move(parts)));
  ATOLL_ASSIGN_OR_RETURN(p.daemon, p.StartDaemon());
  p.history.Follow();
  p.ticks = std::make_unique<PeriodicTask>("web-ticks", options.tick, [&p] { p.Tick(); });
  p.log.Info("web page", {{"url", server->url()}});
  return server;
}

WebServer::WebServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

WebServer::~WebServer() { Shutdown(); }

const BindAddress& WebServer::address() const { return parts_->address; }

std::string WebServer::url() const {
  return absl::StrFormat("%s://%s/", parts_->tls ? "https" : "http", parts_->address.ToString());
}

void WebServer::Shutdown() {
  if (parts_->ticks) parts_->ticks->Stop();
  if (parts_->daemon) parts_->daemon->StopListening();
  parts_->pool.Stop();  // every waiting request has its answer from here on
  parts_->retired.clear();
  parts_->daemon.reset();
  parts_->listener.Reset();
  parts_->history.Stop();
}

}  // namespace atl
