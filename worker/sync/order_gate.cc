#include "worker/sync/order_gate.h"

#include "common/status.h"

namespace atoll {
namespace {

/// How often a paused worker looks whether the run goes on.
constexpr Duration kPauseLook = Seconds(0.5);

}  // namespace

absl::StatusOr<bool> OrderedToEnd(const std::function<absl::Status(const Orders&)>& heed,
                                  const WorkerContext& context) {
  bool waited = false;
  while (true) {
    const Orders orders = context.board->orders();
    ATOLL_RETURN_IF_ERROR(heed(orders));
    // A drain does not outwait a pause.
    const bool leaves = orders.drain && (orders.at_once || orders.paused);
    if (orders.stop || orders.resync || orders.run_stopped || leaves) return true;
    if (!orders.paused) break;
    if (!waited) {
      context.log.Info("an operator has paused the run; waiting");
      context.board->Update(
          [](ProgressReport& progress) { progress.waiting_for = "an operator, who has paused the run"; });
      waited = true;
    }
    const Spending spending(context.time, TimeUse::kPause);
    if (!context.sleeper->SleepFor(kPauseLook)) return true;
  }
  if (waited) {
    context.log.Info("the run goes on");
    context.board->Update([](ProgressReport& progress) { progress.waiting_for.clear(); });
  }
  return false;
}

}  // namespace atoll
