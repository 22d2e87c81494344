#include "client/sync/command_check.h"

#include "common/status.h"

namespace atl {
namespace {

/// How often a paused worker looks whether the run goes on.
constexpr Duration kPauseLook = Seconds(0.5);

}  // namespace

absl::StatusOr<bool> CommandEndsSteps(
    const std::function<absl::Status(const WorkerCommands&)>& check_membership,
    const WorkerContext& context) {
  bool waited = false;
  while (true) {
    const WorkerCommands commands = context.worker_status->commands();
    ATOLL_RETURN_IF_ERROR(check_membership(commands));
    // A drain does not outwait a pause.
    const bool leaves = commands.drain && (commands.at_once || commands.paused);
    if (commands.stop || commands.resync || commands.run_stopped || leaves) return true;
    if (!commands.paused) break;
    if (!waited) {
      context.log.Info("an operator has paused the run; waiting");
      context.worker_status->Update(
          [](ProgressReport& progress) { progress.waiting_for = "an operator, who has paused the run"; });
      waited = true;
    }
    const Spending spending(context.time, TimeUse::kPause);
    if (!context.sleeper->SleepFor(kPauseLook)) return true;
  }
  if (waited) {
    context.log.Info("the run goes on");
    context.worker_status->Update([](ProgressReport& progress) { progress.waiting_for.clear(); });
  }
  return false;
}

}  // namespace atl
