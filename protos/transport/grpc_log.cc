#include "protos/transport/grpc_log.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
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

void Pass(Route& route, LogLevel level, std::string_view file, int line, std::string_view text) {
  if (!route.log.Enabled(level)) return;
  if (!HasRoom(route)) {
    ++route.dropped;
    return;
  }
  LogFields fields = {{"at", absl::StrCat(std::string(file), ":", line)}};
  const uint64_t dropped = route.dropped.exchange(0);
  if (dropped > 0) fields.emplace_back("lines_dropped", dropped);
  route.log.Log(level, text, fields);
}

void Write(gpr_log_func_args* line) {
  Route* const route = current_route.load();
  if (route == nullptr) return;
  if (route->listener) route->listener(line->message);
  Pass(*route, LogLevel::kDebug, line->file, line->line, line->message);
}

// Anybody can make protobuf write such a line, for example with a string that is not UTF-8.
void WriteProtobuf(google::protobuf::LogLevel level, const char* file, int line, const std::string& text) {
  Route* const route = current_route.load();
  if (route == nullptr) return;
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  Pass(*route, fatal ? LogLevel::kError : LogLevel::kDebug, file, line, text);
}

}  // namespace

void RouteGrpcLog(const Logger& log, GrpcLogListener listener) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
  auto* const route = new Route{.log = log, .listener = std::move(listener)};
  route->earlier = current_route.load();
  current_route = route;
  gpr_set_log_function(Write);
  google::protobuf::SetLogHandler(WriteProtobuf);
}

}  // namespace atl
