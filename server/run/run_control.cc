#include "server/run/run_control.h"

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

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

}  // namespace

ControlEntry RunControl::control() const {
  MutexLock lock(&core_.mutex);
  return core_.control;
}

absl::Status RunControl::CheckControl(RunMode mode) const {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(core_.CheckOpen());
  if (mode == RunMode::kRunning && core_.control.mode == RunMode::kRunning) {
    return absl::FailedPreconditionError("the run is not paused: there is nothing to resume");
  }
  if (mode == RunMode::kPaused && core_.control.mode == RunMode::kPaused) {
    return absl::FailedPreconditionError(absl::StrFormat("the run is %s already", core_.ControlText()));
  }
  return absl::OkStatus();
}

void RunControl::SetControl(const ControlEntry& control, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  const bool resumed = core_.control.mode == RunMode::kPaused && control.mode == RunMode::kRunning;
  core_.control = control;
  effects.Event(EventOf(control.mode), "",
                absl::StrFormat("the run is %s by %s%s",
                                resumed ? std::string("resumed") : std::string(RunModeName(control.mode)),
                                control.author, Because(control.reason)));
  effects.rounds_changed = true;
  if (!resumed) return;
  for (FragmentRound& fragment : core_.fragments) {
    if (fragment.round() != nullptr) fragment.round()->Resumed(now);
  }
}

void RunControl::SetWorkers(const ControlEntry& control) {
  MutexLock lock(&core_.mutex);
  core_.control.workers = control.workers;
  core_.control.workers_at_start = control.workers_at_start;
}

absl::StatusOr<uint32_t> RunControl::CloseRounds(const std::string& why, Effects& effects) {
  MutexLock lock(&core_.mutex);
  if (core_.control.mode != RunMode::kRunning) {
    return absl::FailedPreconditionError(
        absl::StrFormat("no round closes: the run is %s", core_.ControlText()));
  }
  ATOLL_RETURN_IF_ERROR(core_.CheckOpen());
  if (core_.fragments.empty())
    return absl::FailedPreconditionError("the run is not seeded: no round is open");
  uint32_t closed = 0;
  for (FragmentRound& fragment : core_.fragments) {
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

absl::Status RunControl::CheckOpen() const {
  MutexLock lock(&core_.mutex);
  return core_.CheckOpen();
}

absl::Status RunControl::CheckNotStopped() const {
  MutexLock lock(&core_.mutex);
  return core_.control.mode == RunMode::kStopped ? core_.CheckOpen() : absl::OkStatus();
}

std::optional<RoundDecision> RunControl::Decision(const FragmentRound& fragment) const {
  using Action = RoundDecision::Action;
  const size_t arrived = fragment.round()->arrived_count();
  RoundDecision decision{.action = Action::kClose, .health = RunHealth::kTraining};
  if (core_.control.mode == RunMode::kStopped) {
    decision.action = arrived > 0 ? Action::kClose : Action::kWait;
    decision.reason = absl::StrFormat("%s; with %s", core_.ControlText(), Counted(arrived, "contribution"));
    return decision;
  }
  if (!fragment.close_now.empty() && arrived > 0) {
    decision.reason = fragment.close_now;
    return decision;
  }
  if (core_.control.mode != RunMode::kPaused) {
    if (!fragment.ending || arrived == 0) return std::nullopt;
    decision.reason = absl::StrFormat("the token budget is spent; with %s", Counted(arrived, "contribution"));
    return decision;
  }
  decision.action = Action::kWait;
  decision.reason = absl::StrFormat("%s; %s kept", core_.ControlText(),
                                    Counted(arrived, "contribution") + (arrived == 1 ? " is" : " are"));
  return decision;
}

}  // namespace atl
