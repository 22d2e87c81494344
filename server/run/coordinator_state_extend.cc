#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/schedule.h"
#include "server/run/coordinator_state.h"

// More rounds than were planned.

namespace atl {

double CoordinatorState::Position() const {
  MutexLock lock(&mutex_);
  return statistics_.PositionSteps();
}

double CoordinatorState::NextRoundPosition() const {
  MutexLock lock(&mutex_);
  const double here = statistics_.PositionSteps();
  if (fragments_.empty() || Finished()) return here;
  const auto active = static_cast<double>(std::max<size_t>(members_.membership().ActiveTrainers().size(), 1));
  return here + config_->run.inner.steps * active / config_->run.workers;
}

uint64_t CoordinatorState::CommittedTokens() const {
  MutexLock lock(&mutex_);
  return statistics_.committed_tokens();
}

absl::Status CoordinatorState::CheckNotStopped() const {
  MutexLock lock(&mutex_);
  return control_.mode == RunMode::kStopped ? CheckOpenLocked() : absl::OkStatus();
}

std::vector<FragmentId> CoordinatorState::ResumeFinished(MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  std::vector<FragmentId> reopened;
  if (control_.mode == RunMode::kStopped) return reopened;
  const bool ended = Finished();
  for (FragmentRound& fragment : fragments_) {
    if (BudgetSpent(fragment)) continue;
    fragment.ending = false;
    if (!fragment.finished()) continue;
    fragment.ResumeFinished(members_.membership(), now);
    reopened.push_back(fragment.layout().id);
  }
  if (reopened.empty()) return reopened;
  finished_at_.reset();
  end_announced_ = false;
  effects.rounds_changed = true;
  if (ended) {
    effects.Event(EventKind::kRunResumed, "",
                  absl::StrFormat("the run was finished at version %d; it is extended and goes on",
                                  fragments_.front().head().value()));
  }
  return reopened;
}

}  // namespace atl
