#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "core/codec.h"
#include "server/run/coordinator_state.h"

// What operators do to the run: pause, resume, stop, close; command, evict, ban.

namespace atl {
namespace {

std::string_view ModeName(RunMode mode) {
  switch (mode) {
    case RunMode::kRunning:
      return "running";
    case RunMode::kPaused:
      return "paused";
    case RunMode::kStopped:
      return "stopped";
  }
  return "unknown";
}

EventKind EventOf(RunMode mode) {
  switch (mode) {
    case RunMode::kPaused:
      return EventKind::kRunPaused;
    case RunMode::kStopped:
      return EventKind::kRunStopped;
    case RunMode::kRunning:
      break;
  }
  return EventKind::kRunResumed;
}

/// A resync ends with the next pull, so it must not take the place of an order that stands until this life of
/// the worker ends. Such a worker takes no parameters along, and pulls the published ones when it joins
/// again.
absl::Status CheckResync(const WorkerName& worker, CommandView pending) {
  switch (pending) {
    case CommandView::kDrain:
      return absl::FailedPreconditionError(
          absl::StrFormat("worker '%s' was told to drain, and a resync would cancel that; to keep it in the "
                          "run, call `atollctl workers restart %s` instead",
                          worker, worker));
    case CommandView::kRestart:
      return absl::FailedPreconditionError(absl::StrFormat(
          "worker '%s' was told to restart, and pulls the published version when it joins again; a resync "
          "would cancel the restart",
          worker));
    case CommandView::kStop:
      return absl::FailedPreconditionError(
          absl::StrFormat("worker '%s' was told to stop, and a resync would cancel that", worker));
    case CommandView::kNone:
    case CommandView::kResync:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

std::string Because(const std::string& why) { return why.empty() ? std::string() : ": " + why; }

}  // namespace

ControlEntry CoordinatorState::control() const {
  MutexLock lock(&mutex_);
  return control_;
}

bool CoordinatorState::finished() const {
  MutexLock lock(&mutex_);
  return Finished();
}

bool CoordinatorState::IsTrainer(const WorkerName& worker) const {
  MutexLock lock(&mutex_);
  const Member* member = members_.membership().Find(worker);
  return member != nullptr && member->role == WorkerRole::kTrainer;
}

std::string CoordinatorState::ControlText() const {
  return absl::StrFormat("%s by %s%s", std::string(ModeName(control_.mode)), control_.author,
                         Because(control_.reason));
}

absl::Status CoordinatorState::CheckOpen() const {
  MutexLock lock(&mutex_);
  return CheckOpenLocked();
}

uint64_t CoordinatorState::ContributionBudget() const {
  MutexLock lock(&mutex_);
  uint64_t largest = config_->run.contribution_budget_bytes;
  for (const FragmentRound& fragment : fragments_) {
    for (const CodecKind codec : fragment.push_codecs()) {
      largest = std::max(largest, CodecFor(codec).EncodedSize(fragment.layout().elements));
    }
  }
  return largest;
}

std::vector<FragmentLayout> CoordinatorState::Layouts() const {
  MutexLock lock(&mutex_);
  std::vector<FragmentLayout> layouts;
  for (const FragmentRound& fragment : fragments_) layouts.push_back(fragment.layout());
  return layouts;
}

absl::Status CoordinatorState::CheckOpenLocked() const {
  if (control_.mode == RunMode::kStopped) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run is %s, for good; to go on from what it has, start a coordinator on a copy of a checkpoint "
        "that was made before: cp -r DATA_DIR/checkpoints/NAME COPY, then atoll-coordinator --data-dir COPY",
        ControlText()));
  }
  if (Finished()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the run is finished at version %d", fragments_.front().head().value()));
  }
  return absl::OkStatus();
}

absl::Status CoordinatorState::CheckControl(RunMode mode) const {
  MutexLock lock(&mutex_);
  ATOLL_RETURN_IF_ERROR(CheckOpenLocked());
  if (mode == RunMode::kRunning && control_.mode == RunMode::kRunning) {
    return absl::FailedPreconditionError("the run is not paused: there is nothing to resume");
  }
  if (mode == RunMode::kPaused && control_.mode == RunMode::kPaused) {
    return absl::FailedPreconditionError(absl::StrFormat("the run is %s already", ControlText()));
  }
  return absl::OkStatus();
}

void CoordinatorState::SetControl(const ControlEntry& control, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  const bool resumed = control_.mode == RunMode::kPaused && control.mode == RunMode::kRunning;
  control_ = control;
  effects.Event(EventOf(control.mode), "",
                absl::StrFormat("the run is %s by %s%s",
                                resumed ? std::string("resumed") : std::string(ModeName(control.mode)),
                                control.author, Because(control.reason)));
  effects.rounds_changed = true;
  if (!resumed) return;
  for (FragmentRound& fragment : fragments_) {
    if (fragment.round() != nullptr) fragment.round()->Resumed(now);
  }
}

void CoordinatorState::SetWorkers(const ControlEntry& control) {
  MutexLock lock(&mutex_);
  control_.workers = control.workers;
  control_.workers_at_start = control.workers_at_start;
}

std::optional<RoundDecision> CoordinatorState::ControlDecision(const FragmentRound& fragment) const {
  using Action = RoundDecision::Action;
  const size_t arrived = fragment.round()->arrived_count();
  RoundDecision decision{.action = Action::kClose, .health = RunHealth::kTraining};
  if (control_.mode == RunMode::kStopped) {
    decision.action = arrived > 0 ? Action::kClose : Action::kWait;
    decision.reason = absl::StrFormat("%s; with %s", ControlText(), Counted(arrived, "contribution"));
    return decision;
  }
  if (!fragment.close_now.empty() && arrived > 0) {
    decision.reason = fragment.close_now;
    return decision;
  }
  if (control_.mode != RunMode::kPaused) {
    if (!fragment.ending || arrived == 0) return std::nullopt;
    decision.reason = absl::StrFormat("the token budget is spent; with %s", Counted(arrived, "contribution"));
    return decision;
  }
  decision.action = Action::kWait;
  decision.reason = absl::StrFormat("%s; %s kept", ControlText(),
                                    Counted(arrived, "contribution") + (arrived == 1 ? " is" : " are"));
  return decision;
}

absl::StatusOr<uint32_t> CoordinatorState::CloseRounds(const std::string& why, Effects& effects) {
  MutexLock lock(&mutex_);
  if (control_.mode != RunMode::kRunning) {
    return absl::FailedPreconditionError(absl::StrFormat("no round closes: the run is %s", ControlText()));
  }
  ATOLL_RETURN_IF_ERROR(CheckOpenLocked());
  if (fragments_.empty()) return absl::FailedPreconditionError("the run is not seeded: no round is open");
  uint32_t closed = 0;
  for (FragmentRound& fragment : fragments_) {
    if (fragment.round() == nullptr || fragment.round()->arrived_count() == 0) continue;
    fragment.close_now = why;
    ++closed;
  }
  if (closed == 0) {
    return absl::FailedPreconditionError(
        "nothing has arrived in the open round; a version needs at least one contribution");
  }
  effects.rounds_changed = true;
  return closed;
}

std::vector<FragmentId> CoordinatorState::FinishIdle(MonoTime now) {
  std::vector<FragmentId> done;
  for (FragmentRound& fragment : fragments_) {
    if (fragment.finished() || !fragment.Idle()) continue;
    fragment.Finish();
    done.push_back(fragment.layout().id);
  }
  if (Finished() && !finished_at_) finished_at_ = now;
  return done;
}

std::vector<FragmentId> CoordinatorState::FinishEnded(MonoTime now) {
  MutexLock lock(&mutex_);
  if (control_.mode != RunMode::kStopped) return FinishEnding(now);
  if (!fragments_.empty()) return FinishIdle(now);
  std::vector<FragmentId> all;  // nobody will seed it
  for (uint32_t id = 0; id < options_.fragments; ++id) all.emplace_back(id);
  return all;
}

absl::StatusOr<WorkerView> CoordinatorState::Worker(const WorkerName& worker, MonoTime now) const {
  MutexLock lock(&mutex_);
  const Member* member = members_.membership().Find(worker);
  if (member == nullptr) return UnknownWorker(worker);
  WorkerView view = members_.View(*member, now);
  view.offences = offences_.Of(worker);
  return view;
}

absl::Status CoordinatorState::SetCommand(const WorkerName& worker, const PendingCommand& command,
                                          Effects& effects) {
  MutexLock lock(&mutex_);
  const Member* member = members_.membership().Find(worker);
  if (member == nullptr) return UnknownWorker(worker);
  if (!member->live()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("worker '%s' is no live member (%s): only live members take commands", worker,
                        std::string(MemberStateName(member->state))));
  }
  PendingCommand& told = members_.account(worker).command;
  if (command.command == CommandView::kResync) ATOLL_RETURN_IF_ERROR(CheckResync(worker, told.command));
  told = command;
  if (command.command != CommandView::kResync) effects.members.push_back(worker);
  if (command.command == CommandView::kDrain) {
    ATOLL_RETURN_IF_ERROR(members_.membership().Drain(worker, member->incarnation));
    effects.rounds_changed = true;
  }
  return absl::OkStatus();
}

void CoordinatorState::Remove(const WorkerName& worker, const std::string& why, MonoTime now,
                              Effects& effects) {
  (void)members_.membership().Evict(worker, now);
  members_.account(worker).command = PendingCommand{};
  effects.members.push_back(worker);
  effects.Event(EventKind::kWorkerLeft, worker,
                absl::StrFormat("worker '%s' was removed%s", worker, Because(why)));
  effects.rounds_changed = true;
  RefreshGrant(effects);
  AnnounceEnd(now, effects);
}

absl::Status CoordinatorState::Evict(const WorkerName& worker, const std::string& why, MonoTime now,
                                     Effects& effects) {
  MutexLock lock(&mutex_);
  ATOLL_RETURN_IF_ERROR(CheckAction(MemberAction::kEvict, worker));
  Remove(worker, why, now, effects);
  return absl::OkStatus();
}

absl::Status CoordinatorState::SetBanned(const WorkerName& worker, bool banned, const std::string& why,
                                         MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  ATOLL_RETURN_IF_ERROR(CheckAction(banned ? MemberAction::kBan : MemberAction::kUnban, worker));
  if (banned) {
    Ban(worker, why, now, effects);
    return absl::OkStatus();
  }
  members_.SetBanned(worker, false);
  offences_.Forgive(worker, NewestHead());
  effects.members.push_back(worker);
  return absl::OkStatus();
}

void CoordinatorState::ResetDataset(Effects& effects) {
  MutexLock lock(&mutex_);
  effects.members = members_.ForgetData();
}

std::vector<WorkerName> CoordinatorState::Drained() const {
  MutexLock lock(&mutex_);
  return members_.Drained();
}

void CoordinatorState::CancelDrains(const std::vector<WorkerName>& wanted, Effects& effects) {
  MutexLock lock(&mutex_);
  for (const WorkerName& name : wanted) {
    if (members_.CancelDrain(name)) effects.members.push_back(name);
  }
}

bool CoordinatorState::IsLiveTrainer(const WorkerName& worker) const {
  MutexLock lock(&mutex_);
  const Member* member = members_.membership().Find(worker);
  return member != nullptr && member->live() && member->role == WorkerRole::kTrainer;
}

uint32_t CoordinatorState::LiveTrainersExcept(const std::function<bool(const WorkerName&)>& except) const {
  std::vector<WorkerName> live;
  {
    MutexLock lock(&mutex_);
    live = members_.Live(WorkerRole::kTrainer);
  }
  return static_cast<uint32_t>(
      std::ranges::count_if(live, [&](const WorkerName& name) { return !except(name); }));
}

absl::Status CoordinatorState::Forget(const WorkerName& worker, Effects& effects) {
  MutexLock lock(&mutex_);
  return ForgetOne(worker, effects);
}

absl::Status CoordinatorState::ForgetOne(const WorkerName& name, Effects& effects) {
  ATOLL_RETURN_IF_ERROR(CheckAction(MemberAction::kForget, name));
  std::optional<WorkerEntry> tombstone = members_.Tombstone(name);
  ATOLL_RETURN_IF_ERROR(members_.Forget(name));
  evaluation_assignment_.Forget(name);
  offences_.Forget(name);
  if (tombstone) {
    effects.tombstones.push_back(*std::move(tombstone));
  } else {
    effects.forgotten.push_back(name);
  }
  return absl::OkStatus();
}

void CoordinatorState::Ban(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects) {
  members_.SetBanned(worker, true);
  if (members_.membership().Find(worker)->state != MemberState::kLeft) Remove(worker, why, now, effects);
  effects.Event(EventKind::kWorkerBanned, worker,
                absl::StrFormat("the name '%s' is refused from here on%s", worker, Because(why)));
  effects.members.push_back(worker);
}

}  // namespace atl
