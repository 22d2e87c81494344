#include "client/sync/evaluation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/sync/rejection.h"
#include "common/status.h"

namespace atl {
namespace {

// A vote on a version that others confirm too is worth less than the only loss of the last version.
constexpr int kConfirmationAttempts = 5;

/// What ends the tasks: the worker has something else to do, or the version may be gone.
bool IsInterrupted(const WorkerCommands& commands) {
  return commands.stop || commands.drain || commands.resync || commands.run_stopped ||
         !commands.membership.ok();
}

std::vector<TaskScore> ScoreTasks(Replica& replica, Version version, const RunOptions& run,
                                  const WorkerContext& context) {
  const TaskCall call = {
      .tasks = run.evaluation_tasks,
      .interrupted = [&] { return IsInterrupted(context.worker_status->commands()); },
      .progress =
          [&](const std::string& text) { context.worker_status->SetPhase(WorkerPhase::kEvaluating, text); },
  };
  auto scores = replica.ScoreTasks(call);
  context.worker_status->SetPhase(WorkerPhase::kEvaluating);
  if (scores.ok()) return *std::move(scores);
  if (absl::IsCancelled(scores.status())) {
    context.log.Info("the tasks were interrupted; this version has no scores",
                     {{"version", version.value()}});
  } else {
    context.log.Warning("the tasks could not be run; this version has no scores",
                        {{"version", version.value()}, {"error", Explain(scores.status())}});
  }
  return {};
}

}  // namespace

absl::Status EvaluateVersion(Replica& replica, const EvaluationOrder& order, const RunOptions& run,
                             Heartbeater& heartbeater, const WorkerContext& context) {
  const Version version = order.version;
  EnterPhase(context, WorkerPhase::kEvaluating);
  const Spending spending(context.time, TimeUse::kEvaluate);
  const MonoTime begin = context.clock->Now();
  const absl::StatusOr<EvaluationResult> evaluated = replica.Evaluate(run.evaluation_batches);
  if (absl::IsOutOfRange(evaluated.status())) {
    // The worker must outlive it: a restore needs workers that go on from the restored version.
    context.log.Warning(
        "the run has diverged: the published parameters have no finite loss, so this version has no "
        "evaluation. Restore an earlier version with `atollctl checkpoint restore`",
        {{"version", version.value()}, {"error", Explain(evaluated.status())}});
    return absl::OkStatus();
  }
  if (absl::IsUnimplemented(evaluated.status())) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const EvaluationResult result, evaluated);
  EvaluationReport report{.version = version, .loss = result.loss, .tokens = result.tokens};
  if (order.tasks) report.tasks = ScoreTasks(replica, version, run, context);
  const Duration took = context.clock->Now() - begin;
  context.worker_status->AddEvaluation(report);
  context.observer->OnEvaluated(report, took);
  LogFields fields = {{"version", version.value()}, {"loss", result.loss}};
  // The loss of another model may be of any kind and size.
  if (run.model.external() == nullptr) fields.emplace_back("perplexity", std::exp(result.loss));
  fields.emplace_back("tokens", result.tokens);
  for (const TaskScore& score : report.tasks) {
    fields.emplace_back(absl::StrCat(score.task, ".", score.metric), score.value);
  }
  context.log.Info("evaluated the published parameters", fields);
  heartbeater.Wake();
  return absl::OkStatus();
}

void DeliverReport(Heartbeater& heartbeater, int attempts, const WorkerContext& context) {
  absl::Status last;
  const auto due = [&](int attempt) {
    const HeartbeatCall heartbeat_report = context.worker_status->Report();
    const int worth =
        !heartbeat_report.evaluations.empty() ? attempts : std::min(attempts, kConfirmationAttempts);
    return (!heartbeat_report.evaluations.empty() || !heartbeat_report.confirmations.empty()) &&
           attempt < worth;
  };
  for (int i = 0; due(i); ++i) {
    if (i > 0 && !context.sleeper->SleepFor(Seconds(1))) break;
    last = heartbeater.Beat();
  }
  if (!context.worker_status->evaluations().empty()) {
    context.log.Warning("an evaluation could not be delivered", {{"error", Explain(last)}});
  }
}

}  // namespace atl
