#include "client/sync/background_rejoin.h"

#include "client/sync/rejection.h"
#include "common/status.h"

namespace atl {

absl::Status BackgroundRejoin::Check(const WorkerCommands& commands) {
  const absl::Status membership = session_->SettledMembership(commands);
  {
    const MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(result_);
    if (membership.ok() || under_way_) return absl::OkStatus();
    if (ReactionTo(membership) != Reaction::kRejoin) return membership;
    under_way_ = true;
  }
  const auto rejoin = [this, used = session_->member(), cause = membership](ExchangeChannel& channel) {
    const absl::Status rejoined = session_->RejoinAs(used, cause, &channel.connection());
    const MutexLock lock(&mutex_);
    result_ = rejoined;
    under_way_ = false;
  };
  if (runner_->Start(rejoin)) return absl::OkStatus();
  // Those that keep the channels busy will find out themselves.
  const MutexLock lock(&mutex_);
  under_way_ = false;
  return absl::OkStatus();
}

}  // namespace atl
