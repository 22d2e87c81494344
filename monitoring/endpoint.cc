#include "monitoring/endpoint.h"

#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/http/connection_table.h"
#include "common/http/exchange.h"
#include "common/http/listen_socket.h"
#include "common/periodic_task.h"
#include "common/status.h"
#include "common/task_backlog.h"
#include "common/task_queue.h"

namespace atl {
namespace {

constexpr Duration kTick = Seconds(1);
constexpr char kHealthPath[] = "/healthz";
constexpr char kMetricsPath[] = "/metrics";
constexpr char kPlainText[] = "text/plain; charset=utf-8";
// https://prometheus.io/docs/instrumenting/exposition_formats/
constexpr char kExpositionText[] = "text/plain; version=0.0.4; charset=utf-8";

WebReply Text(int status, std::string body) {
  return {.status = status, .content_type = kPlainText, .body = std::move(body)};
}

}  // namespace

struct MetricsEndpoint::Parts {
  Parts(const MetricsEndpointOptions& endpoint_options, const MetricsRegistry& metrics)
      : options(endpoint_options), registry(metrics), connections(&clock), collecting([this] {
          SetThreadName("metrics");
          backlog.Run();
        }) {}
  ~Parts();

  WebReply Answer(const WebRequest& request);
  bool Post(std::function<void()> task);
  /// The series at some moment after `asked_at`. Concurrent scrapes share one collection.
  const std::string& Collect();
  static bool IsQuick(const WebRequest& request) { return !IsRead(request) || request.path != kMetricsPath; }

  const MetricsEndpointOptions options;
  const MetricsRegistry& registry;
  const SystemClock clock{};
  ConnectionTable connections;
  TaskBacklog backlog;
  BindAddress address;
  std::unique_ptr<HttpDaemon> daemon;
  std::unique_ptr<PeriodicTask> ticks;
  // Used only by the collecting thread:
  MonoTime asked_at{};
  MonoTime collected_at{};
  std::string text;
  std::thread collecting;  // declared last, because it uses everything above
};

MetricsEndpoint::Parts::~Parts() {
  ticks.reset();
  if (daemon) daemon->StopListening();
  backlog.Close();
  collecting.join();
  daemon.reset();
}

bool MetricsEndpoint::Parts::Post(std::function<void()> task) {
  const auto asked = [this, at = clock.Now(), run = std::move(task)] {
    asked_at = at;
    run();
  };
  return backlog.Post(asked, options.max_waiting);
}

const std::string& MetricsEndpoint::Parts::Collect() {
  if (collected_at >= asked_at && !text.empty()) return text;
  collected_at = clock.Now();
  text = registry.Text();
  return text;
}

WebReply MetricsEndpoint::Parts::Answer(const WebRequest& request) {
  if (!IsRead(request)) {
    WebReply reply = Text(405, "this port supports only GET\n");
    reply.headers.emplace_back("Allow", "GET, HEAD");
    return reply;
  }
  if (request.path == kHealthPath) return Text(200, "ok\n");
  if (request.path == kMetricsPath) return {.content_type = kExpositionText, .body = Collect()};
  return Text(404, "not found; this port serves /metrics and /healthz\n");
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(const MetricsEndpointOptions& options,
                                                                        const MetricsRegistry& registry) {
  ATOLL_ASSIGN_OR_RETURN(BindAddress address, ParseBindAddress(options.address));
  ATOLL_ASSIGN_OR_RETURN(const FileDescriptor listener, ListenOn(address));
  auto parts = std::make_unique<Parts>(options, registry);
  Parts& p = *parts;
  p.address = address;
  ATOLL_ASSIGN_OR_RETURN(
      p.daemon,
      HttpDaemon::Start(listener, std::nullopt, options.limits,
                        {.answer = [&p](const WebRequest& request) { return p.Answer(request); },
                         .is_quick = &Parts::IsQuick,
                         .post = [&p](std::function<void()> task) { return p.Post(std::move(task)); },
                         .connections = &p.connections}));
  p.ticks = std::make_unique<PeriodicTask>("metrics-ticks", kTick,
                                           [&p] { p.connections.EndSilentConnections(p.options.timeout); });
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(parts)));
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsEndpoint::~MetricsEndpoint() = default;

const BindAddress& MetricsEndpoint::address() const { return parts_->address; }

}  // namespace atl
