#ifndef ATOLL_SERVER_ACCESS_PERMISSIONS_H_
#define ATOLL_SERVER_ACCESS_PERMISSIONS_H_

#include <string_view>

#include "absl/status/status.h"
#include "core/membership.h"
#include "server/access/access_policy.h"

// Decides what an identified caller may do. PermissionDenied names the caller, the request, and the
// credentials that it needs. Unverified callers, in a run without authentication, may do everything.

namespace atl {

/// Prefix of the names under which observers join for a moment. No worker should use it.
inline constexpr std::string_view kObserverPrefix = "observer-";

/// On the admin port. `what` is the call, for the message.
absl::Status CheckAdminCall(const Identity& who, Role needed, std::string_view what);

/// Only authenticated operators may manage tokens, even in a run without authentication.
absl::Status CheckTokenCall(const Identity& who);

/// On the data port: joining under a name, in a role.
absl::Status CheckJoin(const Identity& who, std::string_view name, WorkerRole role);

/// On the data port: a call of the member of this name. kContribute: calls that change the model.
enum class MemberAct { kLook, kContribute };
absl::Status CheckMember(const Identity& who, std::string_view name, MemberAct act);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_PERMISSIONS_H_
