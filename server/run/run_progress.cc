#include "server/run/run_progress.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/planted_defect.h"

namespace atl {

bool RunProgress::finished() const {
  MutexLock lock(&core_.mutex);
  return core_.Finished();
}

uint64_t RunProgress::CommittedTokens() const {
  MutexLock lock(&core_.mutex);
  return core_.statistics.committed_tokens();
}

double RunProgress::Position() const {
  MutexLock lock(&core_.mutex);
  return core_.statistics.PositionSteps();
}

double RunProgress::NextRoundPosition() const {
  MutexLock lock(&core_.mutex);
  const double here = core_.statistics.PositionSteps();
  if (core_.fragments.empty() || core_.Finished()) return here;
  const auto active = static_cast<double>(
      std::max<uint64_t>(core_.members.assignments().ActiveRanks(core_.members.membership()), 1));
  return here + core_.configs.run().inner.steps * active / core_.configs.run().workers;
}

std::vector<FragmentId> RunProgress::FinishEnded(MonoTime now) {
  MutexLock lock(&core_.mutex);
  if (core_.control.mode != RunMode::kStopped) return FinishEnding(now);
  if (!core_.fragments.empty()) return FinishIdle(now);
  std::vector<FragmentId> all;  // nobody will seed it
  for (uint32_t id = 0; id < core_.options.fragments; ++id) all.emplace_back(id);
  return all;
}

std::vector<FragmentId> RunProgress::ResumeFinished(MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  std::vector<FragmentId> reopened;
  if (core_.control.mode == RunMode::kStopped) return reopened;
  const bool ended = core_.Finished();
  for (FragmentRound& fragment : core_.fragments) {
    if (BudgetSpent(fragment)) continue;
    fragment.ending = false;
    if (!fragment.finished()) continue;
    fragment.ResumeFinished(core_.members.membership(), now);
    reopened.push_back(fragment.layout().id);
  }
  if (reopened.empty()) return reopened;
  GoOn();
  effects.rounds_changed = true;
  if (ended) {
    effects.Event(EventKind::kRunResumed, "",
                  absl::StrFormat("the run was finished at version %d; it is extended and goes on",
                                  core_.fragments.front().head().value()));
  }
  return reopened;
}

std::vector<FragmentId> RunProgress::FinishCompleted(MonoTime now) {
  std::vector<FragmentId> done;
  if (core_.fragments.empty()) return done;
  if (core_.control.mode == RunMode::kStopped) return FinishIdle(now);
  for (FragmentRound& fragment : core_.fragments) {
    if (!fragment.finished()) fragment.ending = BudgetSpent(fragment);
  }
  return FinishEnding(now);
}

std::vector<FragmentId> RunProgress::FinishEnding(MonoTime now) {
  std::vector<FragmentId> done;
  for (FragmentRound& fragment : core_.fragments) {
    // What was acknowledged, as a late contribution to the last version, becomes part of one more.
    if (!fragment.ending || !fragment.Idle()) continue;
    fragment.Finish();
    done.push_back(fragment.layout().id);
  }
  if (core_.Finished() && !finished_at_) finished_at_ = now;
  return done;
}

std::vector<FragmentId> RunProgress::FinishIdle(MonoTime now) {
  std::vector<FragmentId> done;
  for (FragmentRound& fragment : core_.fragments) {
    if (fragment.finished() || !fragment.Idle()) continue;
    fragment.Finish();
    done.push_back(fragment.layout().id);
  }
  if (core_.Finished() && !finished_at_) finished_at_ = now;
  return done;
}

bool RunProgress::BudgetSpent(const FragmentRound& fragment) const {
  if (Planted(PlantedDefect::kIgnoresBudget)) return false;
  const FragmentRound& counted = core_.fragments.front();
  // In step with fragment 0, whose tokens are the run's: the others finish at its last version.
  if (core_.configs.run().sync.mode == SyncMode::kBlocking) {
    return core_.statistics.budget_spent() && fragment.head() >= counted.head();
  }
  const FragmentId id = fragment.layout().id;
  if (core_.statistics.budget_spent(id)) return true;
  // What fragment 0 has reached is enough, should the budget have been raised since.
  return &fragment != &counted && counted.finished() &&
         core_.statistics.committed_tokens(id) >= core_.statistics.committed_tokens(counted.layout().id);
}

MonoTime RunProgress::evaluation_due() const {
  const Duration loss = core_.options.final_evaluation_wait;
  return *finished_at_ + (evaluations_.TasksRun() ? std::max(loss, kFinalTasksWait) : loss);
}

void RunProgress::AnnounceEnd(MonoTime now, Effects& effects) {
  if (end_announced_ || !core_.Finished()) return;
  const Version last = core_.fragments.front().head();
  const bool evaluated = core_.evaluation_assignment.HasReport(last);
  if (!evaluated && !evaluations_.EvaluatorLeft() && now < evaluation_due()) return;
  end_announced_ = true;
  effects.Event(EventKind::kRunFinished, "",
                absl::StrFormat("the run is %s at version %d with %d tokens%s",
                                core_.control.mode == RunMode::kStopped ? "stopped" : "finished",
                                last.value(), core_.statistics.committed_tokens(),
                                evaluated ? "" : "; its last version was not evaluated"));
  effects.events.back().version = last;
}

}  // namespace atl
