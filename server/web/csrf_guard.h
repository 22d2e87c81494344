#ifndef ATOLL_SERVER_WEB_CSRF_GUARD_H_
#define ATOLL_SERVER_WEB_CSRF_GUARD_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/exchange.h"

// Every web page in the operator's browser can reach a port on loopback. These checks reject requests of such
// pages before any other work; docs/reference/web.md gives the purpose of each rule.

namespace atl {

/// Whether this Host header is valid for us: an IP literal or localhost, with any port, or one of `names`. A
/// page that makes its own name resolve to this address (DNS rebinding) sends its own name.
bool IsOurHost(std::string_view host, const std::vector<std::string>& names);

/// The rejection of a request that our pages never make; nullopt: continue. Requests for /api/ must not come
/// from another site's page. Requests that change something must be JSON, carry Atoll-Action (a browser sends
/// it to another origin only after a preflight, which we never grant), and name no other origin.
std::optional<WebReply> RejectForeign(const WebRequest& request, const std::vector<std::string>& names);

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_CSRF_GUARD_H_
