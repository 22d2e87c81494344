#ifndef ATOLL_COMMON_HTTP_EXCHANGE_H_
#define ATOLL_COMMON_HTTP_EXCHANGE_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

// One HTTP request and its answer as plain values, so that decisions about them need no socket.

namespace atl {

/// The header that a request which changes something must carry (docs/reference/web.md).
inline constexpr char kActionHeader[] = "Atoll-Action";

/// A request as received. An absent header is empty, or nullopt where an empty header has another meaning.
struct WebRequest {
  std::string method;
  std::string path;  // as sent, without the query
  std::map<std::string, std::string> query;
  std::string host;
  std::optional<std::string> origin;
  std::string fetch_site;  // Sec-Fetch-Site
  std::string authorization;
  std::string content_type;
  std::string action;  // Atoll-Action
  std::string if_none_match;
  std::string body;
  std::string peer;  // address, for the audit line
};

/// Whether the request only reads: GET and HEAD.
inline bool IsRead(const WebRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

struct WebReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::string etag = {};                                          // without quotes; empty: none
  std::vector<std::pair<std::string, std::string>> headers = {};  // in addition to those of every reply
};

/// {"error": {"code": "NOT_FOUND", "message": "..."}} with this HTTP status.
WebReply ErrorReply(int http_status, std::string_view code, std::string_view message);
/// The same of a Status that is not OK. Unauthenticated also says how to authenticate.
WebReply ErrorReply(const absl::Status& status);

/// Turns the reply into 304 without a body if the client already has it.
WebReply Conditional(const WebRequest& request, WebReply reply);

/// Headers of every reply: no storing, framing, sniffing, or loading from other origins.
const std::vector<std::pair<std::string, std::string>>& SecurityHeaders();

}  // namespace atl

#endif  // ATOLL_COMMON_HTTP_EXCHANGE_H_
