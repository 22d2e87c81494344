#include "client/setup/identity_claim.h"

#include "client/sync/rejection.h"

namespace atl {

void IdentityClaim::OnJoined(const JoinedRun& info, bool rejoin) {
  if (state_ != nullptr && !rejoin) {
    const absl::Status claimed = state_->Claim();
    if (!claimed.ok()) {
      log_.Warning(
          "could not note in the state directory that the name is this worker's; always start it with the "
          "same name",
          {{"error", Explain(claimed)}});
    }
  }
  ForwardingObserver::OnJoined(info, rejoin);
}

}  // namespace atl
