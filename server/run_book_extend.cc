#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/schedule.h"
#include "server/run_book.h"

// More rounds than were planned.

namespace atoll {

double RunBook::Position() const {
  MutexLock lock(&mutex_);
  return ledger_.PositionSteps();
}

double RunBook::NextRoundPosition() const {
  MutexLock lock(&mutex_);
  const double here = ledger_.PositionSteps();
  if (fragments_.empty() || Finished()) return here;
  const auto active = static_cast<double>(std::max<size_t>(roster_.membership().ActiveTrainers().size(), 1));
  return here + config_->run.inner.steps * active / config_->run.workers;
}

uint64_t RunBook::CommittedTokens() const {
  MutexLock lock(&mutex_);
  return ledger_.committed_tokens();
}

absl::Status RunBook::CheckNotStopped() const {
  MutexLock lock(&mutex_);
  return control_.mode == RunMode::kStopped ? CheckOpenLocked() : absl::OkStatus();
}

std::vector<FragmentId> RunBook::GoOn(MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  std::vector<FragmentId> reopened;
  if (control_.mode == RunMode::kStopped) return reopened;
  const bool ended = Finished();
  for (FragmentRound& fragment : fragments_) {
    if (BudgetSpent(fragment)) continue;
    fragment.ending = false;
    if (!fragment.finished()) continue;
    fragment.GoOn(roster_.membership(), now);
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

}  // namespace atoll
