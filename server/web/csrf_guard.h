#ifndef ATOLL_SERVER_WEB_CSRF_GUARD_H_
#define ATOLL_SERVER_WEB_CSRF_GUARD_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/exchange.h"

// A port on loopback is reached by every web page that the operator's browser has open. What such a page can
// do is held off here, before anything is looked up; docs/reference/web.md says against what each rule
// stands.

namespace atl {

/// Whether this Host header can be ours: an IP literal or localhost, with any port, or one of `names`. A page
/// of another site that made its own name resolve to this address (DNS rebinding) sends that name.
bool IsOurHost(std::string_view host, const std::vector<std::string>& names);

/// The refusal of a request that no page of ours makes; nullopt: go on. Requests for /api/ may not come from
/// another site's page; those that change something must be JSON, carry Atoll-Action (a browser sends it to
/// another origin only when asked by a preflight, which is never granted), and name no other origin.
std::optional<WebReply> RejectForeign(const WebRequest& request, const std::vector<std::string>& names);

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_CSRF_GUARD_H_
