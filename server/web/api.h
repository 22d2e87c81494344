#ifndef ATOLL_SERVER_WEB_API_H_
#define ATOLL_SERVER_WEB_API_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/http/exchange.h"
#include "server/access/access_policy.h"
#include "server/admin/admin_control.h"
#include "server/coordinator.h"
#include "server/web/actions.h"
#include "server/web/reads.h"
#include "server/web/reply_cache.h"
#include "server/web/run_history.h"

namespace atl {

struct WebApiOptions {
  /// Decides who may read and who may act; null: everybody may read, and nobody may act.
  const AccessPolicy* access = nullptr;
  /// Allowed host names, in addition to addresses and localhost.
  std::vector<std::string> names;
  /// Hint for users without permission: where to get a token. May be empty.
  std::string token_hint;
  /// Called when a request was denied because of its caller; `why` contains no secret. Called from any
  /// thread; must not block. May be empty.
  std::function<void(const std::string& peer, const absl::Status& why)> on_denied = {};
};

/// Answers the requests of docs/reference/web.md: the page's files and its JSON. Reading needs the
/// credentials that the policy requires. Actions always need an authenticated admin. Thread-safe; a call may
/// block like the coordinator's.
class WebApi {
 public:
  /// All outlive it.
  WebApi(WebApiOptions options, Coordinator* coordinator, const Clock* clock, RunHistory* history);

  WebReply Answer(const WebRequest& request);
  /// Whether Answer returns immediately: true for the page's files.
  static bool IsQuick(const WebRequest& request);

 private:
  using Read = WebReply (WebReads::*)(const WebRequest&);
  using Action = WebReply (WebActions::*)(const WebRequest&, const AdminCaller&);

  absl::StatusOr<Identity> Identify(const WebRequest& request) const;
  WebReply Deny(const WebRequest& request, const absl::Status& why) const;
  /// Identify, and an admin who has proved it.
  absl::StatusOr<AdminCaller> Operator(const WebRequest& request) const;
  WebReply Look(const WebRequest& request, Read read, Duration fresh);
  WebReply Act(const WebRequest& request, Action action);
  WebReply Session(const Identity& identity) const;

  const WebApiOptions options_;
  WebReads reads_;
  WebActions actions_;
  ReplyCache cache_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_API_H_
