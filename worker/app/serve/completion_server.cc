#include "worker/app/serve/completion_server.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/http/listen_socket.h"
#include "common/periodic_task.h"
#include "common/status.h"
#include "common/task_queue.h"
#include "worker/app/serve/completion_reply.h"

namespace atl {

struct CompletionServer::Parts {
  Parts(const CompletionServerOptions& given, CompletionApi* answers, const Clock* clock)
      : options(given), api(answers), connections(clock), model("model") {}

  const CompletionServerOptions options;
  CompletionApi* const api;
  ConnectionTable connections;
  TaskQueue model;
  BindAddress address;
  std::unique_ptr<HttpDaemon> daemon;
  std::unique_ptr<PeriodicTask> ticks;
};

absl::Status CompletionServer::CheckAddress(const CompletionServerOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const BindAddress address, ParseBindAddress(options.address));
  if (options.exposure == ServeExposure::kLoopbackOnly && !IsLoopback(address)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("other machines could reach the server on %s without encryption. Listen on 127.0.0.1 "
                        "and use a tunnel or "
                        "a proxy with TLS, or use --insecure-bind on a network that you trust",
                        address.ToString()));
  }
  return CheckBindable(address);
}

absl::StatusOr<std::unique_ptr<CompletionServer>> CompletionServer::Start(
    const CompletionServerOptions& options, CompletionApi* api, const Clock* clock) {
  ATOLL_RETURN_IF_ERROR(CheckAddress(options));
  ATOLL_ASSIGN_OR_RETURN(BindAddress address, ParseBindAddress(options.address));
  ATOLL_ASSIGN_OR_RETURN(const FileDescriptor listener, ListenOn(address));
  auto parts = std::make_unique<Parts>(options, api, clock);
  Parts& p = *parts;
  p.address = address;
  std::unique_ptr<CompletionServer> server(new CompletionServer(std::move(parts)));
  const auto post = [&p](std::function<void()> task) {
    return p.model.pending() < p.options.max_waiting && p.model.Post(std::move(task));
  };
  ATOLL_ASSIGN_OR_RETURN(
      p.daemon,
      HttpDaemon::Start(listener, std::nullopt, options.limits,
                        {.answer = [&p](const WebRequest& request) { return p.api->Answer(request); },
                         .is_quick = [&p](const WebRequest& request) { return p.api->IsQuick(request); },
                         .post = post,
                         .connections = &p.connections,
                         .error_body = ApiErrorJson}));
  p.ticks = std::make_unique<PeriodicTask>(
      "serve-ticks", Seconds(1), [&p] { p.connections.EndSilentConnections(p.options.client_timeout); });
  return server;
}

CompletionServer::CompletionServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

CompletionServer::~CompletionServer() { Shutdown(); }

std::string CompletionServer::url() const { return absl::StrCat("http://", parts_->address.ToString()); }

void CompletionServer::Shutdown() {
  if (parts_->ticks) parts_->ticks->Stop();
  if (parts_->daemon) parts_->daemon->StopListening();
  parts_->api->Stop();
  parts_->model.Stop();  // every waiting request has its answer from here on
  parts_->daemon.reset();
}

}  // namespace atl
