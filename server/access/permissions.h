#ifndef ATOLL_SERVER_ACCESS_PERMISSIONS_H_
#define ATOLL_SERVER_ACCESS_PERMISSIONS_H_

#include <string_view>

#include "absl/status/status.h"
#include "core/membership.h"
#include "server/access/access_policy.h"

// Who may what, once it is known who it is. PermissionDenied says who was proven, what was asked for, and
// whose credentials it takes. Unverified identities, in a run that asks nobody, may everything.

namespace atl {

/// Names under which whoever may look joins for a moment, to look; no worker should have one.
inline constexpr std::string_view kObserverPrefix = "observer-";

/// On the admin port. `what` is the call, for the message.
absl::Status CheckAdminCall(const Identity& who, Role needed, std::string_view what);

/// What is done with tokens is asked for by proven operators only, in an open run as well.
absl::Status CheckTokenCall(const Identity& who);

/// On the data port: joining under a name, in a role.
absl::Status CheckJoin(const Identity& who, std::string_view name, WorkerRole role);

/// On the data port: a call of the member of this name. kContribute: what changes the model.
enum class MemberAct { kLook, kContribute };
absl::Status CheckMember(const Identity& who, std::string_view name, MemberAct act);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_PERMISSIONS_H_
