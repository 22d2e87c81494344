#ifndef ATOLL_CLIENT_SYNC_INNER_ROUND_H_
#define ATOLL_CLIENT_SYNC_INNER_ROUND_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "client/sync/context.h"
#include "client/sync/optimizer_warmup.h"
#include "client/sync/replica.h"
#include "core/run_options.h"

namespace atl {

/// The inner steps of one round.
struct InnerRound {
  uint32_t steps = 0;  // done
  uint64_t tokens = 0;
  double loss_sum = 0;  // over the steps
  Duration compute{};
  bool interrupted = false;  // before all steps were done
  double mean_loss() const { return steps == 0 ? 0 : loss_sum / steps; }
};

/// One inner step, added to `round` and told to the worker status and the observer. `optimizer_warmup` lowers
/// the learning rate. `overdue`: the share of its time that is booked as TimeUse::kOverdue.
absl::StatusOr<InnerStepResult> TakeInnerStep(Replica& replica, double scheduled_rate,
                                              OptimizerWarmup& optimizer_warmup, InnerRound& round,
                                              const WorkerContext& context, double overdue = 0);

/// Takes plan.inner_steps inner steps at the learning rates that the run's schedule has for them, counted in
/// the tokens committed before this round (core/schedule.h). Asks `interrupt` before each step, or before as
/// many as the replica takes at once (Replica::steps_at_once); true ends the round early. FailedPrecondition
/// from the replica (loss or gradient not finite) comes back as it is, so do its other errors.
/// `optimizer_warmup` lowers the learning rates while the inner optimizer is new.
absl::StatusOr<InnerRound> RunInnerSteps(Replica& replica, const RunOptions& run, const RoundPlan& plan,
                                         OptimizerWarmup& optimizer_warmup,
                                         const std::function<absl::StatusOr<bool>()>& interrupt,
                                         const WorkerContext& context);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_INNER_ROUND_H_
