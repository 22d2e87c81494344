#include "server/rpc/call_context.h"

#include <string>

#include "absl/strings/ascii.h"
#include "server/rejection.h"
#include "server/rpc/peer.h"

namespace atl {

ConnectionProgress::Signs Moved(const CallContext& call, const std::string& peer) {
  if (call.progress == nullptr) return nullptr;
  ConnectionProgress::Signs signs = call.progress->Find(PeerAddress(peer));
  if (signs == nullptr) return nullptr;
  signs->moved = true;
  return signs;
}

const absl::Status& CountRejection(const CallContext& call, const absl::Status& outcome,
                                   absl::FunctionRef<std::string()> peer) {
  if (outcome.ok() || absl::IsCancelled(outcome)) return outcome;
  const RejectionReason reason = ReasonOf(outcome);
  if (call.on_call_rejected) {
    const std::string name = reason == RejectionReason::kNone ? absl::StatusCodeToString(outcome.code())
                                                              : std::string(RejectionReasonName(reason));
    call.on_call_rejected(absl::AsciiStrToLower(name));
  }
  // With a reason it is the run that refuses: a banned worker, for one.
  const bool denied = reason == RejectionReason::kNone &&
                      (absl::IsUnauthenticated(outcome) || absl::IsPermissionDenied(outcome));
  if (denied && call.on_call_denied) call.on_call_denied(PeerAddress(peer()), outcome);
  return outcome;
}

}  // namespace atl
