#include "client/sync/inner_round.h"

#include <algorithm>

#include "common/status.h"
#include "core/schedule.h"

namespace atl {

absl::StatusOr<InnerStepResult> TakeInnerStep(Replica& replica, double scheduled_rate,
                                              OptimizerWarmup& optimizer_warmup, InnerRound& round,
                                              const WorkerContext& context, double overdue) {
  const double learning_rate = scheduled_rate * optimizer_warmup.factor();
  const MonoTime begin = context.clock->Now();
  Spending spending(context.time, TimeUse::kCompute);
  ATOLL_ASSIGN_OR_RETURN(const InnerStepResult result, replica.InnerStep(learning_rate));
  const Duration took = context.clock->Now() - begin;
  spending.Move(TimeUse::kData, result.data);
  if (overdue > 0) spending.Move(TimeUse::kOverdue, Seconds(overdue * ToSeconds(took - result.data)));
  optimizer_warmup.StepTaken();
  round.steps += 1;
  round.tokens += result.tokens;
  round.loss_sum += result.loss;
  round.compute += took;
  context.worker_status->Update([&](ProgressReport& progress) {
    progress.step = round.steps;
    progress.loss = result.loss;
    progress.gradient_norm = result.gradient_norm;
    progress.learning_rate = learning_rate;
  });
  context.worker_status->NoteStep(result.tokens, took, replica.compute_cost());
  context.observer->OnInnerStep(result, learning_rate, took);
  return result;
}

absl::StatusOr<InnerRound> RunInnerSteps(Replica& replica, const RunOptions& run, const RoundPlan& plan,
                                         OptimizerWarmup& optimizer_warmup,
                                         const std::function<absl::StatusOr<bool>()>& interrupt,
                                         const WorkerContext& context) {
  EnterPhase(context, WorkerPhase::kTraining);
  context.worker_status->Update([&](ProgressReport& progress) {
    progress.step = 0;
    progress.steps = plan.inner_steps;
  });
  const uint32_t active = std::max<uint32_t>(plan.active_workers, 1);
  InnerRound round;
  for (uint32_t done = 0; done < plan.inner_steps; ++done) {
    ATOLL_ASSIGN_OR_RETURN(round.interrupted, interrupt());
    if (round.interrupted) break;
    const double tokens = TokensAtStep(run, plan.committed_tokens, done, active);
    const double rate = LearningRateAt(run, SchedulePosition(run, tokens));
    const absl::Status step = TakeInnerStep(replica, rate, optimizer_warmup, round, context).status();
    if (IsNoMoreSteps(step)) {
      context.worker_status->RequestDrain();
      round.interrupted = true;
      break;
    }
    ATOLL_RETURN_IF_ERROR(step);
  }
  return round;
}

}  // namespace atl
