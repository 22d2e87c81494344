#include "worker/client/call_status.h"

#include <string_view>

#include "absl/strings/str_format.h"
#include "protos/wire/status.h"
#include "worker/sync/rejection.h"

namespace atoll {
namespace {

// What gRPC's client writes when an answer has another HTTP status than 200
// (src/core/ext/filters/http/client).
constexpr std::string_view kHttpAnswer = "Received http2 header with status: ";

bool IsOfTheCaller(std::string_view http_status) { return http_status.starts_with('4'); }

}  // namespace

absl::Status StatusOfCall(const grpc::Status& status, const std::string& address) {
  const std::string& said = status.error_message();
  const std::string_view view = said;
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError(absl::StrFormat(
        "the coordinator at %s, or a proxy before it, cancelled the call: %s", address, said));
  }
  if (view.starts_with(kHttpAnswer)) {
    const std::string_view http_status = view.substr(kHttpAnswer.size());
    const absl::Status proxy = absl::UnavailableError(absl::StrFormat(
        "a web server or a proxy answers at %s, with HTTP status %s", address, std::string(http_status)));
    // 429 asks for patience.
    return IsOfTheCaller(http_status) && !http_status.starts_with("429") ? MarkPermanent(proxy) : proxy;
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return MarkPermanent(absl::UnimplementedError(
        absl::StrFormat("what answers at %s is not a coordinator's data port%s; is it the admin port?",
                        address, said.empty() ? "" : " (" + said + ")")));
  }
  return StatusFromGrpc(status);
}

}  // namespace atoll
