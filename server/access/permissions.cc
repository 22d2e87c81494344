#include "server/access/permissions.h"

#include <string>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

/// "worker w3 (certificate)"
std::string Describe(const Identity& who) {
  return absl::StrFormat("%s%s%s (by %s)", std::string(RoleName(who.role)), who.name.empty() ? "" : " ",
                         who.name, who.how);
}

absl::Status CheckName(const Identity& who, std::string_view name) {
  // Every admitted caller may read.
  if (name.starts_with(kObserverPrefix)) return absl::OkStatus();
  const bool may = who.role == Role::kWorker && (who.name.empty() || who.name == name);
  if (may) return absl::OkStatus();
  if (name.empty()) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s calls for no worker: the name in the request is empty", Describe(who)));
  }
  if (who.role != Role::kWorker) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s cannot act as worker '%s': that needs the worker's certificate or token; names "
                        "of observers begin with %s",
                        Describe(who), std::string(name), std::string(kObserverPrefix)));
  }
  return absl::PermissionDeniedError(absl::StrFormat(
      "%s cannot act as worker '%s': start it with --name %s, or with %s's certificate or token",
      Describe(who), std::string(name), who.name, std::string(name)));
}

}  // namespace

absl::Status CheckAdminCall(const Identity& who, Role needed, std::string_view what) {
  if (!who.verified || who.role == Role::kAdmin) return absl::OkStatus();
  if (needed == Role::kObserver && who.role == Role::kObserver) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "%s may not call %s: this needs %s certificate or token (atollctl --tls-cert, --token-file)",
      Describe(who), std::string(what),
      needed == Role::kObserver ? "an observer's or an admin's" : "an admin's"));
}

absl::Status CheckTokenCall(const Identity& who) {
  if (who.verified) return CheckAdminCall(who, Role::kAdmin, "tokens");
  return absl::PermissionDeniedError(
      "managing tokens needs an admin token even without authentication, because tokens stay valid when it "
      "is enabled: give --token-file FILE; the first token is in access/admin.token in the coordinator's "
      "data directory");
}

absl::Status CheckJoin(const Identity& who, std::string_view name, WorkerRole role) {
  if (!who.verified) return absl::OkStatus();
  const bool looks = role == WorkerRole::kObserver;
  if (!looks && name.starts_with(kObserverPrefix)) {
    return absl::PermissionDeniedError(
        absl::StrFormat("'%s': names that begin with %s are reserved for observers", std::string(name),
                        std::string(kObserverPrefix)));
  }
  return CheckName(who, name);
}

absl::Status CheckMember(const Identity& who, std::string_view name, MemberAct act) {
  if (!who.verified) return absl::OkStatus();
  if (act == MemberAct::kContribute && who.role != Role::kWorker) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s cannot contribute: this needs a worker's certificate or token", Describe(who)));
  }
  return CheckName(who, name);
}

}  // namespace atl
