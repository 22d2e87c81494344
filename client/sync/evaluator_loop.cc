#include "client/sync/evaluator_loop.h"

#include "client/sync/evaluation.h"
#include "common/status.h"

namespace atl {

absl::StatusOr<SyncEnd> EvaluatorLoop::Run() {
  auto until = ParameterPuller::Until::kHead;
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const auto outcome, puller_.Advance(until));
    switch (outcome) {
      case ParameterPuller::Outcome::kFinished:
        return SyncEnd::kFinished;
      case ParameterPuller::Outcome::kInterrupted: {
        const WorkerCommands commands = context_.worker_status->commands();
        if (commands.stop) return SyncEnd::kStopped;
        if (commands.run_stopped) return SyncEnd::kRunStopped;
        if (commands.drain) return commands.restart ? SyncEnd::kRestart : SyncEnd::kDrained;
        context_.worker_status->Done(&WorkerCommands::resync);
        context_.worker_status->Done(&WorkerCommands::seed_granted);
        until = ParameterPuller::Until::kHead;
        continue;
      }
      case ParameterPuller::Outcome::kAdopted:
        break;
    }
    if (puller_.config_version() > session_->info().config_version) return SyncEnd::kReconfigured;
    if (puller_.plan().evaluate) {
      ATOLL_RETURN_IF_ERROR(EvaluateVersion(*replica_,
                                            {.version = puller_.version(), .tasks = puller_.plan().run_tasks},
                                            session_->info().run, *heartbeater_, context_));
    }
    until = ParameterPuller::Until::kNext;
  }
}

}  // namespace atl
