#include "server/web/csrf_guard.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace atl {
namespace {

/// "[::1]:7604" -> "::1", "localhost:7604" -> "localhost"; empty when it is not HOST or HOST:PORT.
std::string NameIn(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const size_t end = host.find(']');
    return end == std::string_view::npos ? "" : std::string(host.substr(1, end - 1));
  }
  const size_t colon = host.find(':');
  if (colon != host.rfind(':')) return "";
  return absl::AsciiStrToLower(std::string(host.substr(0, colon)));
}

bool IsAddress(const std::string& name) {
  in_addr v4 = {};
  in6_addr v6 = {};
  return ::inet_pton(AF_INET, name.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, name.c_str(), &v6) == 1;
}

std::string WithoutScheme(const std::string& origin) {
  for (const char* scheme : {"http://", "https://"}) {
    if (absl::StartsWith(origin, scheme)) return origin.substr(std::string_view(scheme).size());
  }
  return "";  // "null", or what no browser sends
}

bool IsJson(const std::string& content_type) {
  const std::string type = absl::AsciiStrToLower(content_type.substr(0, content_type.find(';')));
  return absl::StripAsciiWhitespace(type) == "application/json";
}

std::optional<WebReply> RejectAction(const WebRequest& request) {
  if (request.origin && WithoutScheme(*request.origin) != request.host) {
    return ErrorReply(403, "PERMISSION_DENIED", "this request comes from a page of another origin");
  }
  if (!IsJson(request.content_type)) {
    return ErrorReply(415, "INVALID_ARGUMENT", "the body of an action must be application/json");
  }
  if (request.action.empty()) {
    return ErrorReply(403, "PERMISSION_DENIED",
                      absl::StrFormat("an action must have the header %s, with any value", kActionHeader));
  }
  return std::nullopt;
}

}  // namespace

bool IsOurHost(std::string_view host, const std::vector<std::string>& names) {
  const std::string name = NameIn(host);
  if (name.empty()) return false;
  return name == "localhost" || IsAddress(name) || std::ranges::any_of(names, [&](const std::string& ours) {
           return absl::AsciiStrToLower(ours) == name;
         });
}

std::optional<WebReply> RejectForeign(const WebRequest& request, const std::vector<std::string>& names) {
  if (!IsOurHost(request.host, names)) {
    return ErrorReply(403, "PERMISSION_DENIED",
                      "this host name is not allowed: use the coordinator's address or localhost, or start "
                      "it with --web-name NAME");
  }
  if (!absl::StartsWith(request.path, "/api/")) return std::nullopt;
  const std::string& site = request.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") {
    return ErrorReply(403, "PERMISSION_DENIED", "this request comes from a page of another site");
  }
  return request.method == "POST" ? RejectAction(request) : std::nullopt;
}

}  // namespace atl
