#include "server/metrics/port_metrics.h"

#include "absl/strings/ascii.h"
#include "common/rejection_reason.h"

namespace atl {
namespace {

constexpr char kOther[] = "other";
// Codes of calls that are rejected without one of our reasons.
constexpr const char* kCodes[] = {"invalid_argument",    "deadline_exceeded", "not_found",
                                  "permission_denied",   "unauthenticated",   "resource_exhausted",
                                  "failed_precondition", "aborted",           "unavailable"};

}  // namespace

PortMetrics::PortMetrics(MetricsRegistry* registry, bool insecure_bind) {
  const auto add = [&](const std::string& reason) {
    calls_[reason] =
        registry->AddCounter("atoll_calls_refused_total",
                             "Calls that were rejected or failed, by the reason in "
                             "docs/reference/wire_format.md in lower case, or else by gRPC's code.",
                             {{"reason", reason}});
  };
  for (const char* code : kCodes) add(code);
  for (auto reason = 1; reason <= static_cast<int>(RejectionReason::kShuttingDown); ++reason) {
    add(absl::AsciiStrToLower(std::string(RejectionReasonName(static_cast<RejectionReason>(reason)))));
  }
  add(kOther);
  for (const std::string port : {"data", "admin"}) {
    for (const std::string limit : {"total", "address", "bytes", "streams"}) {
      rejected_[{port, limit}] =
          registry->AddCounter("atoll_connections_refused_total",
                               "Connections rejected because a limit was reached, or closed because of bytes "
                               "without calls or too many streams.",
                               {{"port", port}, {"limit", limit}});
    }
    open_[port] = registry->AddGauge("atoll_connections", "Open connections of a port.", {{"port", port}});
  }
  handshakes_ = registry->AddCounter("atoll_handshakes_failed_total", "TLS handshakes that failed.");
  registry
      ->AddGauge("atoll_insecure_bind", "1 if other machines can reach a port without TLS (--insecure-bind).")
      .Set(insecure_bind ? 1 : 0);
}

void PortMetrics::OnCallRejected(std::string_view reason) {
  const auto found = calls_.find(reason);
  (found == calls_.end() ? calls_.find(kOther) : found)->second.Increment();
}

void PortMetrics::OnConnectionRejected(std::string_view port, std::string_view limit) {
  const auto found = rejected_.find({std::string(port), std::string(limit)});
  if (found != rejected_.end()) found->second.Increment();
}

void PortMetrics::OnHandshakesFailed(uint64_t total) {
  const uint64_t before = handshakes_counted_.exchange(total);
  if (total > before) handshakes_.Increment(static_cast<double>(total - before));
}

void PortMetrics::OnConnections(std::string_view port, size_t count) {
  const auto found = open_.find(port);
  if (found != open_.end()) found->second.Set(static_cast<double>(count));
}

}  // namespace atl
