#include "server/rpc/call_context.h"

#include <string>

#include "absl/strings/ascii.h"
#include "server/refusal.h"
#include "server/rpc/peer.h"

namespace atoll {

ConnectionProgress::Signs Moved(const CallContext& call, const std::string& peer) {
  if (call.progress == nullptr) return nullptr;
  ConnectionProgress::Signs signs = call.progress->Find(PeerAddress(peer));
  if (signs == nullptr) return nullptr;
  signs->moved = true;
  return signs;
}

const absl::Status& CountRefusal(const CallContext& call, const absl::Status& outcome) {
  if (!call.on_call_refused || outcome.ok() || absl::IsCancelled(outcome)) return outcome;
  const RefusalReason reason = ReasonOf(outcome);
  const std::string name = reason == RefusalReason::kNone ? absl::StatusCodeToString(outcome.code())
                                                          : std::string(RefusalReasonName(reason));
  call.on_call_refused(absl::AsciiStrToLower(name));
  return outcome;
}

}  // namespace atoll
