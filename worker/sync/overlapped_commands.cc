#include <algorithm>

#include "common/status.h"
#include "worker/sync/command_check.h"
#include "worker/sync/overlapped_sync.h"
#include "worker/sync/rejection.h"

// What others want of the loop, and how it ends.

namespace atl {
namespace {

/// How long a command may go unnoticed while answers are waited for.
constexpr Duration kLook = Seconds(0.1);

SyncEnd EndOf(const WorkerCommands& commands) {
  return commands.restart ? SyncEnd::kRestart : SyncEnd::kDrained;
}

}  // namespace

bool OverlappedSync::AllFinished() const {
  return std::ranges::all_of(fragments_, [](const auto& fragment) { return fragment->finished; });
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::EndOfTurn() {
  if (hopeless_) return SyncEnd::kDiverged;
  if (AllFinished()) {
    if (to_evaluate_.has_value()) ATOLL_RETURN_IF_ERROR(EvaluateBases(*to_evaluate_));
    return context_.worker_status->commands().run_stopped ? SyncEnd::kRunStopped : SyncEnd::kFinished;
  }
  if (reconfigured_) return Flush(SyncEnd::kReconfigured);
  ATOLL_ASSIGN_OR_RETURN(
      const bool interrupted,
      CommandEndsSteps([this](const WorkerCommands& commands) { return CheckMembership(commands); },
                       context_));
  if (interrupted || context_.worker_status->commands().drain) return FollowCommands();
  return MaybeEnd();
}

absl::Status OverlappedSync::CheckMembership(const WorkerCommands& commands) {
  const absl::Status membership = parts_.session->SettledMembership(commands);
  {
    const MutexLock lock(&rejoining_.mutex);
    ATOLL_RETURN_IF_ERROR(rejoining_.result);
    if (membership.ok() || rejoining_.under_way) return absl::OkStatus();
    if (ReactionTo(membership) != Reaction::kRejoin) return membership;
    rejoining_.under_way = true;
  }
  // Beside the training: the coordinator may be away for long.
  const auto rejoin = [this, used = parts_.session->member(), cause = membership](ExchangeChannel& channel) {
    const absl::Status rejoined = parts_.session->RejoinAs(used, cause, &channel.connection());
    const MutexLock lock(&rejoining_.mutex);
    rejoining_.result = rejoined;
    rejoining_.under_way = false;
  };
  if (parts_.runner->Start(rejoin)) return absl::OkStatus();
  // Those that keep the channels busy will find out themselves.
  const MutexLock lock(&rejoining_.mutex);
  rejoining_.under_way = false;
  return absl::OkStatus();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::FollowCommands() {
  const WorkerCommands commands = context_.worker_status->commands();
  if (commands.stop) return SyncEnd::kStopped;
  if (commands.run_stopped) return SyncEnd::kRunStopped;
  if (commands.resync) {
    ATOLL_RETURN_IF_ERROR(Resync());
    return MaybeEnd();
  }
  if (!commands.drain) return MaybeEnd();
  if (commands.at_once || commands.paused) {
    // Who leaves waits for no version any more, and the channels are needed.
    parts_.session->connection()->CancelPulls();
    return Flush(EndOf(commands));
  }
  if (!leaving_) {
    context_.log.Info("leaves when every fragment has been pushed once more");
    leaving_ = true;
  }
  const bool all =
      std::ranges::all_of(fragments_, [this](const auto& fragment) { return LeftBehind(*fragment); });
  return all ? AwaitAcknowledgments(EndOf(commands)) : MaybeEnd();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::Flush(SyncEnd end) {
  flushing_ = true;
  parts_.setting->StopWaiting();
  EnterPhase(context_, WorkerPhase::kPushing);
  for (const auto& fragment : fragments_) {
    while (true) {
      // A round that has the new configuration already would refuse what is measured by the old one.
      const bool newer =
          end == SyncEnd::kReconfigured && fragment->base.plan.config_version > config_version_;
      const bool nothing = fragment->window.steps == 0 || fragment->exchange->away() || newer;
      if (nothing || LeftBehind(*fragment)) break;
      ATOLL_ASSIGN_OR_RETURN(const bool pushed, Push(*fragment));
      if (pushed) break;
      if (context_.worker_status->commands().stop) return SyncEnd::kStopped;
      {
        const Spending spending(context_.time, TimeUse::kPush);
        parts_.runner->AwaitChange(kLook);
      }
      ATOLL_RETURN_IF_ERROR(UseAnswers());
    }
  }
  return AwaitAcknowledgments(end);
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::AwaitAcknowledgments(SyncEnd end) {
  const Spending spending(context_.time, TimeUse::kPush);
  const auto open = [](const auto& fragment) { return fragment->exchange->unacknowledged(); };
  while (std::ranges::any_of(fragments_, open)) {
    if (context_.worker_status->commands().stop) return SyncEnd::kStopped;
    parts_.runner->AwaitChange(kLook);
    ATOLL_RETURN_IF_ERROR(UseAnswers());
  }
  return end;
}

absl::Status OverlappedSync::Resync() {
  context_.log.Info("ordered to drop local progress and pull the head");
  context_.worker_status->ResyncDone();
  EnterPhase(context_, WorkerPhase::kPulling);
  for (const auto& fragment : fragments_) {
    if (fragment->finished) continue;
    fragment->take_as_published = true;
    if (fragment->exchange->away()) continue;
    ATOLL_RETURN_IF_ERROR(Use(*fragment, fragment->exchange->PullHead()));
    fragment->window = InnerRound();
  }
  EnterPhase(context_, WorkerPhase::kTraining);
  return absl::OkStatus();
}

}  // namespace atl
