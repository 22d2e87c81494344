#ifndef ATOLL_SERVER_ADMIN_AUDIT_H_
#define ATOLL_SERVER_ADMIN_AUDIT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/admin/admin_control.h"
#include "server/coordinator_context.h"

namespace atl {

/// As audit lines, configurations and pauses name who asked: "ann (127.0.0.1:50123)" when nobody was asked
/// for proof, "ann (certificate, 127.0.0.1:50123)", "ann (token, calls itself root, 127.0.0.1:50123)".
std::string CallerName(const AdminCaller& caller);

/// Announces and counts an action and its outcome; `done` says what came of it when it succeeded.
void WriteAudit(const CoordinatorContext& context, const AdminCaller& caller, std::string_view action,
                const std::string& what, const absl::Status& outcome, const std::string& done);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_AUDIT_H_
