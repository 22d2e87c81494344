#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/planted_defect.h"
#include "server/run/coordinator_state.h"

// Rounds: when they close, what a commit changes, how the run ends.

namespace atl {

RoundDecision CoordinatorState::Decide(FragmentId id, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  RoundDecision wait;
  if (id.value() >= fragments_.size()) return wait;
  FragmentRound& fragment = fragments_[id.value()];
  if (fragment.round() == nullptr) return wait;
  if (std::optional<RoundDecision> ordered = ControlDecision(fragment)) {
    fragment.decision = *std::move(ordered);
    return fragment.decision;
  }
  const RoundDecision before = fragment.decision;
  fragment.awaits_storage = false;
  RoundView view = fragment.round()->View(now, members_.membership());
  fragment.decision = ::atl::Decide(now, view, Rules(fragment, view));
  if (before.action != fragment.decision.action) fragment.decided_since = now;
  if (fragment.decision.action == RoundDecision::Action::kClose) fragment.closing_view = std::move(view);
  if (fragment.decision.action == RoundDecision::Action::kHold && before.health != fragment.decision.health) {
    effects.Event(EventKind::kRunHeld, "",
                  absl::StrFormat("fragment %d: %s", id.value(), fragment.decision.reason));
    effects.events.back().fragment = id;
    effects.events.back().version = fragment.head();
  }
  return fragment.decision;
}

RoundOptions CoordinatorState::Rules(const FragmentRound& fragment, const RoundView& view) const {
  RoundOptions rules = fragment.rules();
  if (Planted(PlantedDefect::kIgnoresDeadline)) rules.deadline = 10 * rules.deadline;
  const SyncOptions& sync = fragment.config().run.sync;
  if (sync.mode != SyncMode::kOverlapped || rules.grace_mode != GraceMode::kAdaptive) return rules;
  const std::optional<MonoTime> quorum_at = QuorumReachedAt(view, rules);
  if (!quorum_at) return rules;
  const ArrivalView& first = view.arrived.front();
  const double pace = members_.assignments().steps_per_second(first.worker);
  if (pace > 0) {
    rules.grace =
        OverlapGrace(sync.delay_steps, pace, *quorum_at - first.at, Seconds(statistics_.CommitSeconds()));
  }
  return rules;
}

std::optional<std::vector<Contribution>> CoordinatorState::BeginClose(FragmentId fragment) {
  MutexLock lock(&mutex_);
  return fragments_[fragment.value()].BeginClose();
}

void CoordinatorState::Exclude(FragmentId id, const Contribution& contribution, const std::string& why,
                               Effects& effects) {
  MutexLock lock(&mutex_);
  const WorkerName& worker = contribution.key.worker;
  FragmentRound& fragment = fragments_[id.value()];
  fragment.Exclude(contribution.key);
  members_.assignments().Excluded(contribution, fragment.round()->Contributions());
  ++members_.account(worker).rejected;
  offences_.Rejected(id, worker, Offence::kNotFinite);
  effects.Event(EventKind::kContributionRefused, worker, why);
  effects.events.back().fragment = id;
  effects.events.back().version = contribution.key.base;
}

uint64_t CoordinatorState::TokensAfter(FragmentId fragment,
                                       const std::vector<Contribution>& contributions) const {
  MutexLock lock(&mutex_);
  uint64_t tokens = statistics_.committed_tokens(fragment);
  for (const Contribution& contribution : contributions) tokens += contribution.tokens;
  return tokens;
}

std::vector<PartitionEntry> CoordinatorState::PartitionsAfter(
    FragmentId fragment, const std::vector<Contribution>& contributions) const {
  MutexLock lock(&mutex_);
  return members_.assignments().After(fragment, contributions);
}

std::vector<FragmentId> CoordinatorState::Committed(const RoundRecord& record, double commit_seconds,
                                                    MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  FragmentRound& fragment = fragments_[record.fragment.value()];
  const double open_seconds = std::max(0.0, ToSeconds(now - fragment.round()->opened_at()) - commit_seconds);
  const std::optional<double> idle_seconds = IdleSeconds(*fragment.round());
  if (record.fragment == FragmentId(0) && untimed_rounds_ > 0) --untimed_rounds_;
  RoundSummaryView summary =
      statistics_.Close(record, fragment.layout(), open_seconds, commit_seconds, idle_seconds);
  privacy_.Note(record);
  if (const auto privacy = Privacy(); privacy && privacy->epsilon) {
    summary.epsilon = *privacy->epsilon;
    statistics_.NoteEpsilon(summary.epsilon);
  }
  members_.assignments().Committed(record.fragment, record.contributions);
  fragment.grace.Closed(fragment.closing_view, fragment.config().run.round);
  fragment.Committed(record);
  fragment.Open(record.version, members_.membership(), now);
  effects.Event(EventKind::kRoundClosed, "",
                absl::StrFormat("version %d from %s: %s", record.version.value(),
                                Counted(summary.contributions, "contribution"), record.close_reason));
  effects.events.back().fragment = record.fragment;
  effects.events.back().version = record.version;
  effects.events.back().round = summary;
  NoteOffences(record, now, effects);
  std::vector<FragmentId> done = FinishCompleted(now);
  AnnounceEnd(now, effects);
  return done;
}

bool CoordinatorState::Finished() const {
  return !fragments_.empty() &&
         std::ranges::all_of(fragments_, [](const FragmentRound& fragment) { return fragment.finished(); });
}

std::vector<FragmentId> CoordinatorState::FinishCompleted(MonoTime now) {
  std::vector<FragmentId> done;
  if (fragments_.empty()) return done;
  if (control_.mode == RunMode::kStopped) return FinishIdle(now);
  for (FragmentRound& fragment : fragments_) {
    if (!fragment.finished()) fragment.ending = BudgetSpent(fragment);
  }
  return FinishEnding(now);
}

std::vector<FragmentId> CoordinatorState::FinishEnding(MonoTime now) {
  std::vector<FragmentId> done;
  for (FragmentRound& fragment : fragments_) {
    // What was acknowledged, as a late contribution to the last version, becomes part of one more.
    if (!fragment.ending || !fragment.Idle()) continue;
    fragment.Finish();
    done.push_back(fragment.layout().id);
  }
  if (Finished() && !finished_at_) finished_at_ = now;
  return done;
}

bool CoordinatorState::BudgetSpent(const FragmentRound& fragment) const {
  if (Planted(PlantedDefect::kIgnoresBudget)) return false;
  const FragmentRound& counted = fragments_.front();
  // In step with fragment 0, whose tokens are the run's: the others finish at its last version.
  if (config_->run.sync.mode == SyncMode::kBlocking) {
    return statistics_.budget_spent() && fragment.head() >= counted.head();
  }
  const FragmentId id = fragment.layout().id;
  if (statistics_.budget_spent(id)) return true;
  // What fragment 0 has reached is enough, should the budget have been raised since.
  return &fragment != &counted && counted.finished() &&
         statistics_.committed_tokens(id) >= statistics_.committed_tokens(counted.layout().id);
}

void CoordinatorState::AwaitStorage(FragmentId id) {
  MutexLock lock(&mutex_);
  FragmentRound& fragment = fragments_[id.value()];
  fragment.awaits_storage = true;
  fragment.decision.reason =
      absl::StrFormat("ready to close (%s); waiting for the tensors of version %d to be written to disk",
                      fragment.decision.reason, fragment.head().value());
}

void CoordinatorState::Stored(FragmentId fragment, Version version) {
  MutexLock lock(&mutex_);
  fragments_[fragment.value()].stored = version;
}

void CoordinatorState::SetStorageError(const std::string& where, const std::string& error, MonoTime now,
                                       Effects& effects) {
  MutexLock lock(&mutex_);
  const bool failed_before = !storage_errors_.empty();
  if (error.empty()) {
    storage_errors_.erase(where);
  } else {
    storage_errors_.try_emplace(where, StorageFailure{.error = {}, .since = now}).first->second.error = error;
  }
  if (failed_before == !storage_errors_.empty()) return;
  if (failed_before) {
    effects.Event(EventKind::kStorageRecovered, "",
                  "the data directory can be written again; nothing was lost");
  } else {
    effects.Event(EventKind::kStorageFailing, "", error);
  }
}

void CoordinatorState::SetFault(const std::string& fault) {
  MutexLock lock(&mutex_);
  fault_ = fault;
}

}  // namespace atl
