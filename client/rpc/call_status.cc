#include "client/rpc/call_status.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"
#include "protos/transport/foreign_answer.h"
#include "protos/wire/status.h"

namespace atl {
namespace {

bool IsOfTheCaller(std::string_view http_status) { return http_status.starts_with('4'); }

bool Skip(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

absl::Status StatusOfCall(const grpc::Status& status, const std::string& address) {
  const std::string& said = status.error_message();
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError(absl::StrFormat(
        "the coordinator at %s, or a proxy before it, cancelled the call: %s", address, said));
  }
  if (const std::string http_status = HttpStatusIn(status); !http_status.empty()) {
    const absl::Status proxy = absl::UnavailableError(
        absl::StrFormat("a web server or a proxy answers at %s, with HTTP status %s", address, http_status));
    // 429 asks for patience.
    return IsOfTheCaller(http_status) && !http_status.starts_with("429") ? MarkPermanent(proxy) : proxy;
  }
  if (BreaksGrpc(status)) {
    return MarkPermanent(absl::UnavailableError(
        absl::StrFormat("what answers at %s is not an Atoll coordinator (%s)", address, said)));
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return MarkPermanent(absl::UnimplementedError(
        absl::StrFormat("what answers at %s is not a coordinator's data port%s; it may be the admin port",
                        address, said.empty() ? "" : " (" + said + ")")));
  }
  return StatusFromGrpc(status);
}

std::string WithoutGrpcTerms(std::string_view text) {
  const std::string_view whole = text;
  if (!Skip(&text, "failed to connect to all addresses; last error: ")) return std::string(whole);
  text.remove_prefix(std::min(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), text.size()));
  Skip(&text, ": ");
  if (text.starts_with("ipv4:") || text.starts_with("ipv6:") || text.starts_with("unix:")) {
    if (const size_t end = text.find(": "); end != std::string_view::npos) text.remove_prefix(end + 2);
  }
  Skip(&text, "Failed to connect to remote host: ");
  return std::string(text.empty() ? whole : text);
}

}  // namespace atl
