#include "protos/transport/grpc_log.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/support/log.h"

namespace atl {
namespace {

constexpr int kLinesPerSecond = 20;

struct Route {
  Logger log;
  GrpcLogListener listener;
  std::atomic<int64_t> second{0};
  std::atomic<int> lines{0};  // in that second
  std::atomic<uint64_t> dropped{0};
  const Route* earlier = nullptr;  // keeps it reachable: LeakSanitizer then knows that it is kept on purpose
};

// gRPC takes a plain function, and its threads may write until the process is gone: so the route is global,
// and none is ever freed.
std::atomic<Route*> current_route{nullptr};

int64_t SecondNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool HasRoom(Route& route) {
  const int64_t now = SecondNow();
  if (route.second.exchange(now) != now) route.lines = 0;
  return ++route.lines <= kLinesPerSecond;
}

void Write(gpr_log_func_args* line) {
  Route* const route = current_route.load();
  if (route == nullptr) return;
  if (route->listener) route->listener(line->message);
  if (!route->log.Enabled(LogLevel::kDebug)) return;
  if (!HasRoom(*route)) {
    ++route->dropped;
    return;
  }
  LogFields fields = {{"at", absl::StrCat(line->file, ":", line->line)}};
  const uint64_t dropped = route->dropped.exchange(0);
  if (dropped > 0) fields.emplace_back("lines_dropped", dropped);
  route->log.Debug(line->message, fields);
}

}  // namespace

void RouteGrpcLog(const Logger& log, GrpcLogListener listener) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
  auto* const route = new Route{.log = log, .listener = std::move(listener)};
  route->earlier = current_route.load();
  current_route = route;
  gpr_set_log_function(Write);
}

}  // namespace atl
