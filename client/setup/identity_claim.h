#ifndef ATOLL_CLIENT_SETUP_IDENTITY_CLAIM_H_
#define ATOLL_CLIENT_SETUP_IDENTITY_CLAIM_H_

#include "client/sync/forwarding_observer.h"
#include "client/sync/identity.h"
#include "common/log.h"

namespace atl {

/// Binds the state directory to its name at the first accepted Join of the process (StateDirectory::Claim).
/// Hands everything on to the next observer.
class IdentityClaim final : public ForwardingObserver {
 public:
  /// Both outlive this. `state` may be null: nothing is claimed.
  IdentityClaim(const StateDirectory* state, WorkerObserver* next, const Logger& log)
      : ForwardingObserver(next), state_(state), log_(log) {}

  void OnJoined(const JoinedRun& info, bool rejoin) override;

 private:
  const StateDirectory* const state_;
  const Logger log_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_IDENTITY_CLAIM_H_
