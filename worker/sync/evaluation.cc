#include "worker/sync/evaluation.h"

#include <cmath>

#include "common/status.h"
#include "worker/sync/rejection.h"

namespace atoll {

absl::Status EvaluateVersion(Replica& replica, Version version, uint32_t max_batches,
                             Heartbeater& heartbeater, const WorkerContext& context) {
  EnterPhase(context, WorkerPhase::kEvaluating);
  const MonoTime begin = context.clock->Now();
  ATOLL_ASSIGN_OR_RETURN(const EvaluationResult result, replica.Evaluate(max_batches));
  const Duration took = context.clock->Now() - begin;
  const EvaluationReport report{.version = version, .loss = result.loss, .tokens = result.tokens};
  context.board->Spend(TimeUse::kCompute, took);
  context.board->AddEvaluation(report);
  context.observer->OnEvaluated(report, took);
  context.log.Info("evaluated the published parameters", {{"version", version.value()},
                                                          {"loss", result.loss},
                                                          {"perplexity", std::exp(result.loss)},
                                                          {"tokens", result.tokens}});
  heartbeater.Wake();
  return absl::OkStatus();
}

void DeliverNews(Heartbeater& heartbeater, int attempts, const WorkerContext& context) {
  absl::Status last;
  if (!context.board->News().confirmations.empty()) last = heartbeater.Beat();
  for (int i = 0; i < attempts && !context.board->evaluations().empty(); ++i) {
    if (i > 0 && !context.sleeper->SleepFor(Seconds(1))) break;
    last = heartbeater.Beat();
  }
  if (!context.board->evaluations().empty()) {
    context.log.Warning("an evaluation could not be delivered", {{"error", Explain(last)}});
  }
}

}  // namespace atoll
