#include "worker/sync/evaluator_loop.h"

#include "common/status.h"
#include "worker/sync/evaluation.h"

namespace atoll {

absl::StatusOr<SyncEnd> EvaluatorLoop::Run() {
  auto until = ParameterFollower::Until::kHead;
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const auto outcome, follower_.Advance(until));
    switch (outcome) {
      case ParameterFollower::Outcome::kFinished:
        return SyncEnd::kFinished;
      case ParameterFollower::Outcome::kOrdered: {
        const Orders orders = context_.board->orders();
        if (orders.stop) return SyncEnd::kStopped;
        if (orders.run_stopped) return SyncEnd::kRunStopped;
        if (orders.drain) return orders.restart ? SyncEnd::kRestart : SyncEnd::kDrained;
        context_.board->ResyncDone();
        context_.board->SeedGrantUsed();
        until = ParameterFollower::Until::kHead;
        continue;
      }
      case ParameterFollower::Outcome::kAdopted:
        break;
    }
    if (follower_.plan().evaluate) {
      ATOLL_RETURN_IF_ERROR(EvaluateVersion(
          *replica_, follower_.version(), session_->info().run.evaluation_batches, *heartbeater_, context_));
    }
    until = ParameterFollower::Until::kNext;
  }
}

}  // namespace atoll
