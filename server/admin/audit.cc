#include "server/admin/audit.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace atl {

std::string CallerName(const AdminCaller& caller) {
  const bool proven = !caller.how.empty();
  const std::string& name = proven ? caller.proven : caller.user;
  std::vector<std::string> known;
  if (proven) known.push_back(caller.how);
  if (proven && !caller.user.empty() && caller.user != name) known.push_back("calls itself " + caller.user);
  if (!caller.by.empty()) known.push_back("by " + caller.by);
  if (!caller.peer.empty()) known.push_back(caller.peer);
  return absl::StrCat(name.empty() ? "someone" : name,
                      known.empty() ? "" : absl::StrCat(" (", absl::StrJoin(known, ", "), ")"));
}

void WriteAudit(const CoordinatorContext& context, const AdminCaller& caller, std::string_view action,
                const std::string& what, const absl::Status& outcome, const std::string& done) {
  const std::string came_of_it =
      outcome.ok() ? done
                   : absl::StrFormat("refused, %s: %s", absl::StatusCodeToString(outcome.code()),
                                     std::string(outcome.message()));
  context.observer->OnAdminAction(action, outcome.ok());
  Effects effects;
  effects.Event(EventKind::kAdminAction, "",
                absl::StrFormat("%s: %s: %s", CallerName(caller), what, came_of_it));
  (void)context.effect_executor->Execute(effects);
}

}  // namespace atl
