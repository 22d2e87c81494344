#include "common/http/exchange.h"

#include "nlohmann/json.hpp"

namespace atl {
namespace {

int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return 409;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

WebReply ErrorReply(int http_status, std::string_view code, std::string_view message) {
  const nlohmann::json body = {{"error", {{"code", code}, {"message", message}}}};
  WebReply reply{.status = http_status};
  // A message may quote foreign bytes.
  reply.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return reply;
}

WebReply ErrorReply(const absl::Status& status) {
  WebReply reply = ErrorReply(HttpStatus(status.code()), absl::StatusCodeToString(status.code()),
                              std::string(status.message()));
  if (reply.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"atoll\"");
  return reply;
}

WebReply Conditional(const WebRequest& request, WebReply reply) {
  if (reply.status != 200 || reply.etag.empty()) return reply;
  if (request.if_none_match != "\"" + reply.etag + "\"") return reply;
  reply.status = 304;
  reply.body.clear();
  return reply;
}

const std::vector<std::pair<std::string, std::string>>& SecurityHeaders() {
  static const auto* const headers = new std::vector<std::pair<std::string, std::string>>{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
       "trusted-types 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return *headers;
}

}  // namespace atl
