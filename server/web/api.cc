#include "server/web/api.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/content_hash.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "server/web/csrf_guard.h"
#include "server/web/files.h"

namespace atl {
namespace {

constexpr char kSessionPath[] = "/api/v1/session";

const WebFile* FileAt(const std::string& path) {
  for (const WebFile& file : WebFiles()) {
    if (path == file.path) return &file;
  }
  return nullptr;
}

WebReply FileReply(const WebRequest& request, const WebFile& file) {
  return Conditional(
      request, {.content_type = file.content_type, .body = std::string(file.bytes), .etag = file.sha256});
}

WebReply OnlyBy(const std::string& allowed) {
  WebReply reply = ErrorReply(405, "UNIMPLEMENTED", "this address is used with " + allowed);
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

/// "Bearer abc" -> "abc"
std::string BearerIn(const std::string& authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, "Bearer ")) return "";
  return authorization.substr(scheme.size());
}

/// For a call without a token. The policy's own message names options of the command-line programs.
absl::Status TokenNeeded(const WebRequest& request) {
  return absl::UnauthenticatedError(absl::StrCat(
      IsRead(request) ? "only holders of a token can see this run"
                      : "only holders of an admin token can do this",
      ": open the page at / and enter a token, or send it in the header Authorization: Bearer TOKEN"));
}

/// By its parameters too, in one order.
std::string CacheKey(const WebRequest& request) {
  std::string key = request.path;
  for (const auto& [name, value] : request.query) key += absl::StrFormat("&%s=%s", name, value);
  return key;
}

}  // namespace

WebApi::WebApi(WebApiOptions options, Coordinator* coordinator, const Clock* clock, RunHistory* history)
    : options_(std::move(options)),
      reads_(coordinator, clock, history),
      actions_(coordinator),
      cache_(clock) {}

bool WebApi::IsQuick(const WebRequest& request) { return !absl::StartsWith(request.path, "/api/"); }

WebReply WebApi::Answer(const WebRequest& request) {
  struct ReadRoute {
    std::string_view path;
    Read read;
    Duration fresh;  // for so long the same answer does for everybody
  };
  static constexpr ReadRoute kReads[] = {
      {"/api/v1/status", &WebReads::Status, Seconds(0.5)},
      {"/api/v1/workers", &WebReads::Workers, Seconds(0.5)},
      {"/api/v1/metrics", &WebReads::Metrics, Seconds(2)},
      {"/api/v1/rounds", &WebReads::Rounds, Seconds(1)},
      {"/api/v1/events", &WebReads::Events, Seconds(0.2)},
      {"/api/v1/curve", &WebReads::Curve, Seconds(1)},
      {"/api/v1/traffic", &WebReads::Traffic, Seconds(1)},
      {"/api/v1/launcher", &WebReads::Launched, Seconds(1)},
      {"/api/v1/checkpoints", &WebReads::Checkpoints, Seconds(5)},
  };
  struct ActionRoute {
    std::string_view path;
    Action action;
  };
  static constexpr ActionRoute kActions[] = {{"/api/v1/control-run", &WebActions::ControlRun},
                                             {"/api/v1/control-worker", &WebActions::ControlWorker},
                                             {"/api/v1/scale-workers", &WebActions::ScaleWorkers},
                                             {"/api/v1/create-checkpoint", &WebActions::CreateCheckpoint}};

  if (const auto rejected = RejectForeign(request, options_.names)) return *rejected;
  if (const WebFile* file = FileAt(request.path); file != nullptr) {
    return IsRead(request) ? FileReply(request, *file) : OnlyBy("GET, HEAD");
  }
  for (const ReadRoute& route : kReads) {
    if (route.path != request.path) continue;
    return IsRead(request) ? Look(request, route.read, route.fresh) : OnlyBy("GET, HEAD");
  }
  for (const ActionRoute& route : kActions) {
    if (route.path != request.path) continue;
    return request.method == "POST" ? Act(request, route.action) : OnlyBy("POST");
  }
  if (request.path == kSessionPath) {
    if (!IsRead(request)) return OnlyBy("GET, HEAD");
    const auto identity = Identify(request);
    return identity.ok() ? Session(*identity) : Deny(request, identity.status());
  }
  return ErrorReply(404, "NOT_FOUND", "not found");
}

absl::StatusOr<Identity> WebApi::Identify(const WebRequest& request) const {
  if (options_.access == nullptr) return Identity{.role = Role::kObserver, .name = "", .how = "none"};
  Presented presented;
  presented.bearer = BearerIn(request.authorization);
  presented.peer = request.peer;
  auto identity = options_.access->Identify(presented);
  if (presented.bearer.empty() && absl::IsUnauthenticated(identity.status())) return TokenNeeded(request);
  return identity;
}

absl::StatusOr<AdminCaller> WebApi::Operator(const WebRequest& request) const {
  ATOLL_ASSIGN_OR_RETURN(const Identity identity, Identify(request));
  // Where everybody is trusted, a web page of somebody else must still not be: only who can read a token can
  // act.
  if (!identity.verified) {
    return absl::UnauthenticatedError(
        absl::StrFormat("an action over the web needs an admin token%s",
                        options_.token_hint.empty() ? std::string() : ". " + options_.token_hint));
  }
  if (identity.role != Role::kAdmin) {
    return absl::PermissionDeniedError(absl::StrFormat("this needs the role admin, but '%s' has the role %s",
                                                       identity.name, std::string(RoleName(identity.role))));
  }
  return AdminCaller{
      .user = {}, .peer = request.peer, .proven = identity.name, .how = identity.how, .by = "web"};
}

WebReply WebApi::Deny(const WebRequest& request, const absl::Status& why) const {
  // A visitor without a token is asked for one, and the page asks again by itself: that is no attempt.
  const bool attempt = !request.authorization.empty() || request.method == "POST";
  if (attempt && options_.on_denied) options_.on_denied(request.peer, why);
  return ErrorReply(why);
}

WebReply WebApi::Look(const WebRequest& request, Read read, Duration fresh) {
  const auto identity = Identify(request);
  if (!identity.ok()) return Deny(request, identity.status());
  if (identity->role == Role::kWorker) {
    return Deny(request, absl::PermissionDeniedError("a worker's credentials do not open the web page"));
  }
  return Conditional(request, cache_.Get(CacheKey(request), fresh, [&] {
    WebReply reply = (reads_.*read)(request);
    if (reply.status == 200) {
      reply.etag = ToHex(HashBytes(std::as_bytes(std::span<const char>(reply.body))));
    }
    return reply;
  }));
}

WebReply WebApi::Act(const WebRequest& request, Action action) {
  const auto caller = Operator(request);
  if (!caller.ok()) return Deny(request, caller.status());
  WebReply reply = (actions_.*action)(request, *caller);
  cache_.Clear();
  return reply;
}

WebReply WebApi::Session(const Identity& identity) const {
  const nlohmann::json body = {{"role", RoleName(identity.role)},
                               {"name", identity.name},
                               {"how", identity.how},
                               {"verified", identity.verified},
                               {"mayAct", identity.verified && identity.role == Role::kAdmin},
                               {"tokenHint", options_.token_hint}};
  return {.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

}  // namespace atl
