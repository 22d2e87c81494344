#include "client/sync/inner_round.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status.h"
#include "core/schedule.h"

namespace atl {

namespace {

/// Adds a step to `round`, and tells the worker status and the observer.
void NoteStep(const Replica& replica, const InnerStepResult& result, double learning_rate, Duration took,
              InnerRound& round, const WorkerContext& context) {
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
}

/// Several steps that nothing comes between; each counts an equal share of their time.
absl::Status TakeInnerSteps(Replica& replica, std::vector<double> rates, OptimizerWarmup& optimizer_warmup,
                            InnerRound& round, const WorkerContext& context) {
  OptimizerWarmup ahead = optimizer_warmup;
  for (double& rate : rates) {
    rate *= ahead.factor();
    ahead.StepTaken();
  }
  std::vector<InnerStepResult> results;
  const MonoTime begin = context.clock->Now();
  Spending spending(context.time, TimeUse::kCompute);
  const absl::Status status = replica.InnerSteps(rates, results);
  const Duration took = context.clock->Now() - begin;
  for (size_t i = 0; i < results.size(); ++i) {
    spending.Move(TimeUse::kData, results[i].data);
    optimizer_warmup.StepTaken();
    NoteStep(replica, results[i], rates[i], took / static_cast<int64_t>(results.size()), round, context);
  }
  return status;
}

}  // namespace

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
  NoteStep(replica, result, learning_rate, took, round, context);
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
  while (round.steps < plan.inner_steps) {
    ATOLL_ASSIGN_OR_RETURN(round.interrupted, interrupt());
    if (round.interrupted) break;
    const uint32_t steps = std::min(plan.inner_steps - round.steps, replica.steps_at_once());
    std::vector<double> rates(steps);
    for (uint32_t i = 0; i < steps; ++i) {
      const double tokens = TokensAtStep(run, plan.committed_tokens, round.steps + i, active);
      rates[i] = LearningRateAt(run, SchedulePosition(run, tokens));
    }
    const absl::Status taken = TakeInnerSteps(replica, std::move(rates), optimizer_warmup, round, context);
    if (IsNoMoreSteps(taken)) {
      context.worker_status->RequestDrain();
      round.interrupted = true;
      break;
    }
    ATOLL_RETURN_IF_ERROR(taken);
  }
  return round;
}

}  // namespace atl
