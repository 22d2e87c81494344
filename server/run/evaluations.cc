#include "server/run/evaluations.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "core/known_loss.h"
#include "server/members/member_lists.h"
#include "server/run/task_score_check.h"

namespace atl {
namespace {

/// The cross entropy of a language model is never exactly 0; another loss may be.
bool IsEvaluationOf(const ModelOptions& model, double loss) {
  return IsLossOf(model, loss) && (loss != 0 || model.external() != nullptr);
}

const char* BoundsOf(const ModelOptions& model) {
  return model.external() != nullptr ? "a loss is a finite number of at most 1e30 in magnitude"
                                     : "a loss is above 0 and at most 10000 nats per token";
}

/// A model of the workers' own may have a loss of any size.
std::string LossText(double loss) {
  const double size = std::abs(loss);
  return loss == 0 || (size >= 1e-3 && size < 1e5) ? absl::StrFormat("%.4f", loss)
                                                   : absl::StrFormat("%.4g", loss);
}

}  // namespace

void Evaluations::Take(const WorkerName& worker, const HeartbeatCall& call, MonoTime now, int64_t unix_ns,
                       Effects& effects) {
  for (const EvaluationReport& evaluation : call.evaluations) {
    const EvaluationWorth worth = core_.evaluation_assignment.Weigh(worker, evaluation.version);
    if (worth == EvaluationWorth::kKnown) continue;
    const bool plausible = IsEvaluationOf(core_.configs.run().model, evaluation.loss);
    if (worth == EvaluationWorth::kUnasked || !plausible) {
      if (!core_.evaluation_assignment.NoteIgnored(now)) continue;
      effects.Event(EventKind::kUnknown, worker,
                    absl::StrFormat("a validation loss of %g for version %d from worker '%s' is ignored: %s "
                                    "(%d ignored so far)",
                                    evaluation.loss, evaluation.version.value(), worker,
                                    plausible ? "the worker was not asked to evaluate this version"
                                              : BoundsOf(core_.configs.run().model),
                                    core_.evaluation_assignment.ignored()));
      continue;
    }
    Count(worker, evaluation, now, unix_ns, effects);
  }
}

void Evaluations::DropBadScores(const WorkerName& worker, EvaluationReport& evaluation, MonoTime now,
                                Effects& effects) {
  std::vector<TaskScore> good;
  absl::Status bad;
  for (TaskScore& score : evaluation.tasks) {
    absl::Status checked = CheckTaskScore(score, core_.configs.run().evaluation_tasks);
    const bool twice = std::ranges::any_of(
        good, [&](const TaskScore& one) { return one.task == score.task && one.metric == score.metric; });
    if (checked.ok() && twice) {
      checked = absl::InvalidArgumentError(absl::StrFormat("%s %s is given twice", score.task, score.metric));
    } else if (checked.ok() && good.size() == kMaxTaskMetrics) {
      checked = absl::InvalidArgumentError(absl::StrFormat("more than %d are given", kMaxTaskMetrics));
    }
    if (checked.ok()) good.push_back(std::move(score));
    if (bad.ok()) bad = std::move(checked);
  }
  const size_t dropped = evaluation.tasks.size() - good.size();
  evaluation.tasks = std::move(good);
  if (dropped == 0 || !core_.evaluation_assignment.NoteIgnored(now)) return;
  effects.Event(EventKind::kUnknown, worker,
                absl::StrFormat("%s for version %d from worker '%s' %s ignored: %s",
                                Counted(dropped, "task score"), evaluation.version.value(), worker,
                                dropped == 1 ? "is" : "are", std::string(bad.message())));
}

void Evaluations::Count(const WorkerName& worker, EvaluationReport evaluation, MonoTime now, int64_t unix_ns,
                        Effects& effects) {
  DropBadScores(worker, evaluation, now, effects);
  const EvaluationView view{.version = evaluation.version,
                            .loss = evaluation.loss,
                            .tokens = evaluation.tokens,
                            .unix_ns = unix_ns,
                            .tasks = std::move(evaluation.tasks)};
  core_.statistics.AddEvaluation(view);
  core_.evaluation_assignment.Reported(view.version);
  effects.evaluations.push_back({.fragment = FragmentId(0),
                                 .version = view.version,
                                 .loss = view.loss,
                                 .tokens = view.tokens,
                                 .unix_ns = unix_ns,
                                 .tasks = view.tasks});
  std::string text =
      absl::StrFormat("version %d has validation loss %s", view.version.value(), LossText(view.loss));
  for (const TaskScore& score : view.tasks) absl::StrAppend(&text, ", ", TaskScoreText(score));
  effects.Event(EventKind::kEvaluated, worker, text);
  effects.events.back().version = view.version;
  effects.events.back().evaluation = view;
}

void Evaluations::Watch(MonoTime now, Effects& effects) {
  if (!Awaited()) {
    no_evaluator_since_.reset();
    return;
  }
  if (!no_evaluator_since_) no_evaluator_since_ = now;
  // A starting or restarted evaluator gets a lease's time. Once for each absence.
  const MonoTime due = *no_evaluator_since_ + core_.configs.run().round.lease;
  if (now < due || due == evaluator_missed_) return;
  evaluator_missed_ = due;
  effects.Event(EventKind::kUnknown, "",
                "no version is evaluated: evaluation.by is 'evaluator' and none is here; start one with "
                "atoll-worker --role evaluator, or set evaluation.by to worker");
}

bool Evaluations::Awaited() const {
  if (core_.fragments.empty() || core_.configs.run().evaluated_by != EvaluatedBy::kEvaluator) return false;
  if (core_.configs.run().evaluation_every == 0 || !LiveOf(core_.members, WorkerRole::kEvaluator).empty())
    return false;
  return !core_.Finished() || !core_.evaluation_assignment.HasReport(core_.fragments.front().head());
}

bool Evaluations::TasksRun() const {
  const Version last = core_.fragments.front().head();
  if (!core_.evaluation_assignment.TasksDue(last, /*last=*/true)) return false;
  const std::vector<const Member*> live = core_.members.membership().Live();
  return std::ranges::any_of(live, [&](const Member* member) {
    return core_.members.FindAccount(member->name).progress.phase == WorkerPhase::kEvaluating &&
           core_.evaluation_assignment.Weigh(member->name, last) == EvaluationWorth::kTaken;
  });
}

bool Evaluations::EvaluatorLeft() const {
  const bool by_worker = core_.configs.run().evaluated_by == EvaluatedBy::kWorker;
  const Version last = core_.fragments.front().head();
  if (!by_worker) return LiveOf(core_.members, WorkerRole::kEvaluator).empty();
  const std::vector<WorkerName> live = LiveOf(core_.members, WorkerRole::kTrainer);
  const WorkerName holder = core_.evaluation_assignment.Holder(last);
  return live.empty() || (!holder.empty() && std::ranges::find(live, holder) == live.end());
}

}  // namespace atl
