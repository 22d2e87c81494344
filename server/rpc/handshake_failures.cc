#include "server/rpc/handshake_failures.h"

namespace atl {
namespace {

// src/core/tsi/ssl_transport_security.cc of gRPC 1.51: "Handshake failed with fatal error SSL_ERROR_SSL:
// error:0A0000C7:SSL routines::peer did not return a certificate."
constexpr std::string_view kFailed = "Handshake failed with fatal error ";

std::string ReasonIn(std::string_view line) {
  const size_t colons = line.rfind("::");
  std::string_view reason = line.substr(colons == std::string_view::npos ? kFailed.size() : colons + 2);
  if (reason.ends_with('.')) reason.remove_suffix(1);
  return std::string(reason);
}

}  // namespace

void HandshakeFailures::OnLogLine(std::string_view line, MonoTime now) {
  if (!line.starts_with(kFailed)) return;
  ++total_;
  const MutexLock lock(&mutex_);
  open_.emplace_back(now, ReasonIn(line));
  if (open_.size() > kMostKept) open_.pop_front();
}

std::optional<std::string> HandshakeFailures::Take(MonoTime now) {
  const MutexLock lock(&mutex_);
  while (!open_.empty() && now - open_.front().first > kMatchWithin) open_.pop_front();
  if (open_.empty()) return std::nullopt;
  std::string reason = std::move(open_.front().second);
  open_.pop_front();
  return reason;
}

}  // namespace atl
