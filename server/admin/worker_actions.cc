#include "server/admin/worker_actions.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "core/membership.h"
#include "server/admin/audit.h"
#include "server/members/worker_count.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

/// A launched process that has not joined for so long may be restarted: it may hang. LibTorch and the token
/// files take seconds.
constexpr Duration kStartPatience = Seconds(60);

std::string_view Name(WorkerAction action) {
  switch (action) {
    case WorkerAction::kDrain:
      return "drain";
    case WorkerAction::kRestart:
      return "restart";
    case WorkerAction::kEvict:
      return "evict";
    case WorkerAction::kBan:
      return "ban";
    case WorkerAction::kUnban:
      return "unban";
    case WorkerAction::kResync:
      return "resync";
    case WorkerAction::kForget:
      return "forget";
  }
  return "unknown";
}

std::string Asked(const ControlWorkerCall& call) {
  if (call.older_than) {
    return absl::StrFormat("forget workers gone for longer than %s", HumanDuration(*call.older_than));
  }
  std::string text = absl::StrFormat("%s worker '%s'", std::string(Name(call.action)), call.worker);
  if (call.at_once) text += ", at once";
  if (!call.reason.empty()) text += absl::StrFormat(" (%s)", call.reason);
  return text;
}

}  // namespace

absl::StatusOr<std::string> WorkerActions::Control(const AdminCaller& caller, const ControlWorkerCall& call) {
  const std::string why = absl::StrFormat("%s by %s%s", std::string(Name(call.action)), CallerName(caller),
                                          call.reason.empty() ? std::string() : ": " + call.reason);
  const absl::StatusOr<std::string> done = ActAlone(call, why);
  WriteAudit(context_, caller, std::string(Name(call.action)) + "_worker", Asked(call), done.status(),
             done.ok() ? *done : "");
  return done;
}

absl::StatusOr<std::string> WorkerActions::ActAlone(const ControlWorkerCall& call, const std::string& why) {
  if (call.action == WorkerAction::kRestart) {
    const MutexLock launching(&locks_.launching);
    return Restart(call);
  }
  if (call.action == WorkerAction::kDrain && launcher_ != nullptr && launcher_->Owns(call.worker)) {
    const MutexLock launching(&locks_.launching);
    const MutexLock lock(&locks_.state);
    return Act(call, why);
  }
  const MutexLock lock(&locks_.state);
  return Act(call, why);
}

absl::StatusOr<std::string> WorkerActions::Act(const ControlWorkerCall& call, const std::string& why) {
  if (call.action == WorkerAction::kForget) return Forget(call);
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(call.worker));
  const std::string when = call.at_once ? "pushes what it has done" : "finishes its round, pushes";
  switch (call.action) {
    case WorkerAction::kDrain:
      return Drain(call, when + " and leaves");
    case WorkerAction::kRestart:
      break;  // ActAlone
    case WorkerAction::kResync:
      return SendCommand(call, WorkerCommand::kResync, "drops its local progress and pulls the head");
    case WorkerAction::kEvict: {
      ATOLL_RETURN_IF_ERROR(RecordThen(MemberAction::kEvict, call.worker, [&](Effects& effects) {
        return context_.state->member_actions().Evict(call.worker, why, context_.clock->Now(), effects);
      }));
      return absl::StrFormat(
          "worker '%s' is a member no more; what it contributed stays, and its process may join again",
          call.worker);
    }
    case WorkerAction::kBan:
      return SetBanned(call, why, true);
    case WorkerAction::kUnban:
      return SetBanned(call, why, false);
    case WorkerAction::kForget:
      return Forget(call);
  }
  return absl::InvalidArgumentError("action: no such action");
}

absl::StatusOr<std::string> WorkerActions::SendCommand(const ControlWorkerCall& call, WorkerCommand command,
                                                       const std::string& what) {
  Effects effects;
  ATOLL_RETURN_IF_ERROR(context_.state->member_actions().SetCommand(
      call.worker, PendingCommand{.command = command, .at_once = call.at_once}, effects));
  const absl::Status stored = context_.effect_executor->Execute(effects);
  std::string answer =
      absl::StrFormat("worker '%s' is told with its next heartbeat (within %.1f s); it then %s", call.worker,
                      ToSeconds(context_.options.heartbeat), what);
  if (!stored.ok()) {
    answer += absl::StrFormat(
        "; should the coordinator be restarted before, tell it again, for that could not be "
        "recorded: %s",
        std::string(stored.message()));
  }
  return answer;
}

absl::Status WorkerActions::CheckHasJoined(const WorkerName& name) const {
  if (launcher_ == nullptr || context_.state->member_actions().Worker(name, context_.clock->Now()).ok()) {
    return absl::OkStatus();
  }
  const LauncherView view = launcher_->view();
  if (std::ranges::find(view.wanted, name) == view.wanted.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "worker '%s' has not joined the run yet, so it has no round to finish: drain it when it "
      "has joined, or call `atollctl workers scale %d` to run one worker less",
      name, view.target - 1));
}

absl::StatusOr<std::string> WorkerActions::Drain(const ControlWorkerCall& call, const std::string& what) {
  ATOLL_RETURN_IF_ERROR(CheckHasJoined(call.worker));
  ATOLL_ASSIGN_OR_RETURN(std::string answer, SendCommand(call, WorkerCommand::kDrain, what));
  if (launcher_ == nullptr) return answer;
  ATOLL_ASSIGN_OR_RETURN(const std::string note, launcher_->Release(call.worker));
  if (note.empty()) return answer;
  return answer + "; " + note + NoteWorkers(launcher_->view().target);
}

absl::StatusOr<std::string> WorkerActions::Restart(const ControlWorkerCall& call) {
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(call.worker));
  {
    const MutexLock lock(&locks_.state);
    ATOLL_ASSIGN_OR_RETURN(const bool must_be_started, MustBeStarted(call));
    if (!must_be_started) return RestartByItself(call);
    const std::string already = AlreadyStarting(call.worker);
    if (!already.empty()) return already;
  }
  return RestartFromOutside(call.worker);
}

absl::StatusOr<bool> WorkerActions::MustBeStarted(const ControlWorkerCall& call) {
  ATOLL_RETURN_IF_ERROR(context_.state->control().CheckNotStopped());
  const auto worker = context_.state->member_actions().Worker(call.worker, context_.clock->Now());
  const bool live = worker.ok() && worker->lease_remaining_s > 0;
  if (worker.ok() && worker->banned) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "worker '%s' is banned, so a new process of it would be refused: call `atollctl workers unban %s` "
        "first",
        call.worker, call.worker));
  }
  if (launcher_ != nullptr && launcher_->IsReleased(call.worker)) {
    const uint64_t wanted = uint64_t{launcher_->view().target} + 1;
    ATOLL_RETURN_IF_ERROR(CheckMostWorkers(wanted, context_.state->settings().config()->run, "restart"));
    ATOLL_RETURN_IF_ERROR(CheckPartitions(wanted, "restart"));
  }
  if (live) return false;
  // A process that does not answer, or one that died before it ever joined, can only be ended from outside.
  if (launcher_ != nullptr && launcher_->Owns(call.worker)) return true;
  if (!worker.ok()) return worker.status();
  return absl::FailedPreconditionError(absl::StrFormat(
      "worker '%s' is %s, and it is none that this coordinator launched: start it where it runs", call.worker,
      worker->state));
}

bool WorkerActions::HasJoinedIn(const LaunchedWorker& worker) const {
  const auto member = context_.state->member_actions().Worker(worker.name, context_.clock->Now());
  return member.ok() && worker.age && member->seconds_since_heartbeat < ToSeconds(*worker.age);
}

LauncherView WorkerActions::Launched() const {
  LauncherView view = launcher_->view();
  for (LaunchedWorker& worker : view.workers) {
    if (worker.state != LaunchedWorker::State::kRunning || !HasJoinedIn(worker)) continue;
    const auto member = context_.state->member_actions().Worker(worker.name, context_.clock->Now());
    if (member.ok() && member->lease_remaining_s <= 0) worker.state = LaunchedWorker::State::kAbsent;
  }
  return view;
}

std::string WorkerActions::AlreadyStarting(const WorkerName& name) const {
  using enum LaunchedWorker::State;
  const LauncherView view = launcher_->view();
  const auto worker = std::ranges::find(view.workers, name, &LaunchedWorker::name);
  if (worker == view.workers.end() || std::ranges::find(view.wanted, name) == view.wanted.end()) return "";
  if (worker->state == kStarting || worker->state == kStopping) {
    return absl::StrFormat(
        "worker '%s' is already restarting: %s", name,
        worker->state == kStarting ? "its process is being started" : "its old process is being ended");
  }
  const bool starts = worker->state == kRunning && worker->age && *worker->age < kStartPatience;
  if (!starts || HasJoinedIn(*worker)) return "";
  return absl::StrFormat(
      "worker '%s' is already restarting: its process started %s ago and has not joined yet; if it has not "
      "joined %s after its start, call this again",
      name, HumanDuration(*worker->age), HumanDuration(kStartPatience));
}

absl::StatusOr<std::string> WorkerActions::RestartByItself(const ControlWorkerCall& call) {
  ATOLL_ASSIGN_OR_RETURN(
      const std::string answer,
      SendCommand(call, WorkerCommand::kRestart,
                  call.at_once ? "pushes what it has done and starts again under its name"
                               : "finishes its round, pushes, and starts again under its name"));
  if (launcher_ == nullptr || !launcher_->IsReleased(call.worker)) return answer;
  launcher_->Reclaim(call.worker);
  const uint32_t wanted = launcher_->view().target;
  return absl::StrFormat("%s; it was being drained, and the launcher keeps it running again: %d wanted now",
                         answer, wanted) +
         NoteWorkers(wanted);
}

absl::StatusOr<std::string> WorkerActions::RestartFromOutside(const WorkerName& worker) {
  const uint32_t wanted = launcher_->view().target;
  ATOLL_RETURN_IF_ERROR(launcher_->Restart(worker));
  const MutexLock lock(&locks_.state);
  launcher_->Reclaim(worker);
  RecordCancelledDrains();
  const uint32_t wanted_now = launcher_->view().target;
  if (wanted_now != wanted) {
    return absl::StrFormat("worker '%s' was drained; the launcher starts it again: %d wanted now", worker,
                           wanted_now) +
           NoteWorkers(wanted_now);
  }
  return absl::StrFormat("worker '%s' does not answer; the launcher ends its process and starts it again",
                         worker);
}

absl::StatusOr<std::string> WorkerActions::Forget(const ControlWorkerCall& call) {
  if (call.older_than) return ForgetOlderThan(*call.older_than);
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(call.worker));
  ATOLL_RETURN_IF_ERROR(RecordThen(MemberAction::kForget, call.worker, [&](Effects& effects) {
    return context_.state->member_actions().Forget(call.worker, effects);
  }));
  return absl::StrFormat("worker '%s' is forgotten; the next worker of that name joins as a new one",
                         call.worker);
}

absl::StatusOr<std::string> WorkerActions::ForgetOlderThan(Duration age) {
  size_t count = 0;
  ATOLL_RETURN_IF_ERROR(context_.effect_executor->RecordThen(
      [&] { return context_.state->member_actions().RecordsAfterForgetting(age, context_.clock->Now()); },
      [&](const std::set<WorkerName>& names, Effects& effects) {
        // Those that were recorded, and no others. One that has joined meanwhile stores a record of its own.
        for (const WorkerName& name : names)
          count += context_.state->member_actions().Forget(name, effects).ok() ? 1 : 0;
        return absl::OkStatus();
      }));
  return Counted(count, "worker") + (count == 1 ? " is forgotten" : " are forgotten");
}

absl::Status WorkerActions::RecordThen(MemberAction action, const WorkerName& worker,
                                       const std::function<absl::Status(Effects&)>& change) {
  return context_.effect_executor->RecordThen(
      [&] { return context_.state->member_actions().RecordsAfter(action, worker); },
      [&](const std::set<WorkerName>& recorded, Effects& effects) { return change(effects); });
}

absl::StatusOr<std::string> WorkerActions::SetBanned(const ControlWorkerCall& call, const std::string& why,
                                                     bool banned) {
  const MemberAction action = banned ? MemberAction::kBan : MemberAction::kUnban;
  ATOLL_RETURN_IF_ERROR(RecordThen(action, call.worker, [&](Effects& effects) {
    return context_.state->member_actions().SetBanned(call.worker, banned, why, context_.clock->Now(),
                                                      effects);
  }));
  if (!banned) return absl::StrFormat("a worker of the name '%s' may join again", call.worker);
  return absl::StrFormat("worker '%s' is a member no more, and its name is refused until it is unbanned",
                         call.worker);
}

absl::StatusOr<ScaleResult> WorkerActions::ScaleWorkers(const AdminCaller& caller,
                                                        std::optional<uint32_t> add,
                                                        std::optional<uint32_t> target) {
  absl::StatusOr<ScaleResult> scaled = ScaleResult();
  {
    const MutexLock launching(&locks_.launching);
    scaled = Scale(add, target);
  }
  const std::string what = add      ? absl::StrFormat("add %s", Counted(*add, "worker"))
                           : target ? absl::StrFormat("scale to %s", Counted(*target, "worker"))
                                    : std::string("scale workers");
  WriteAudit(context_, caller, "scale_workers", what, scaled.status(),
             scaled.ok() ? absl::StrFormat("%d before, %d wanted now", scaled->before, scaled->target) : "");
  return scaled;
}

absl::Status WorkerActions::RecordScale(std::optional<uint32_t> add, std::optional<uint32_t> target,
                                        ScaleResult& result) {
  if (add.has_value() == target.has_value()) {
    return absl::InvalidArgumentError("size: give one of add and target");
  }
  if (add && *add == 0) return absl::InvalidArgumentError("add: 0 workers are none; give at least 1");
  if (launcher_ == nullptr) {
    return absl::FailedPreconditionError(
        "this coordinator starts no workers: start it with --launcher process or --launcher kubernetes, or "
        "start the workers where they are to run");
  }
  // They would end at once.
  ATOLL_RETURN_IF_ERROR(context_.state->control().CheckNotStopped());
  result.before = launcher_->view().target;
  const uint64_t wanted = target ? *target : uint64_t{result.before} + *add;
  const std::string_view field = add ? "add" : "target";
  ATOLL_RETURN_IF_ERROR(CheckMostWorkers(wanted, context_.state->settings().config()->run, field));
  if (wanted > result.before) ATOLL_RETURN_IF_ERROR(CheckPartitions(wanted, field));
  result.target = static_cast<uint32_t>(wanted);
  return RememberWorkers(result.target);
}

absl::StatusOr<ScaleResult> WorkerActions::Scale(std::optional<uint32_t> add,
                                                 std::optional<uint32_t> target) {
  ScaleResult result;
  const ControlEntry before = context_.state->control().control();
  {
    const MutexLock lock(&locks_.state);
    ATOLL_RETURN_IF_ERROR(RecordScale(add, target, result));
  }
  const absl::Status scaled = launcher_->Scale(result.target);
  if (!scaled.ok()) {
    const MutexLock lock(&locks_.state);
    // A number that the cluster refused is not asked for again by the coordinator's next life. The run may
    // have been paused or stopped meanwhile: that stays.
    ControlEntry control = context_.state->control().control();
    control.workers = before.workers;
    control.workers_at_start = before.workers_at_start;
    ATOLL_RETURN_IF_ERROR(KeepControl(control));
    return scaled;
  }
  {
    // A larger set of pods wants a drained one again.
    const MutexLock lock(&locks_.state);
    RecordCancelledDrains();
  }
  // Not those that run now: those that are to end still do, and a new one may not be there yet.
  result.names = launcher_->view().wanted;
  return result;
}

absl::Status WorkerActions::CheckPartitions(uint64_t wanted, std::string_view field) const {
  const RunOptions& run = context_.state->settings().config()->run;
  const uint64_t others = context_.state->member_actions().LiveTrainersExcept(
      [this](const WorkerName& name) { return launcher_->Owns(name); });
  return CheckPartsOfData(wanted, others, run, field);
}

void WorkerActions::RecordCancelledDrains() {
  Effects effects;
  context_.state->member_actions().CancelDrains(launcher_->view().wanted, effects);
  (void)context_.effect_executor->Execute(effects);  // logs what could not be stored
}

std::string WorkerActions::NoteWorkers(uint32_t target) {
  const absl::Status kept = RememberWorkers(target);
  if (kept.ok()) return "";
  return absl::StrFormat(
      "; the number of workers could not be recorded: if the coordinator restarts, call `atollctl workers "
      "scale %d`: %s",
      target, std::string(kept.message()));
}

absl::Status WorkerActions::RememberWorkers(uint32_t target) {
  ControlEntry control = context_.state->control().control();
  control.workers = target;
  control.workers_at_start = context_.options.launch_workers;
  return KeepControl(control);
}

absl::Status WorkerActions::KeepControl(const ControlEntry& control) {
  const absl::Status kept = context_.store->PutControl(control);
  if (!kept.ok()) return ToRejection(kept);
  context_.state->control().SetWorkers(control);
  return absl::OkStatus();
}

uint32_t WorkerActions::Wanted() const {
  const ControlEntry control = context_.state->control().control();
  const uint32_t at_start = context_.options.launch_workers;
  const uint32_t wanted =
      control.workers_at_start == at_start ? control.workers.value_or(at_start) : at_start;
  const uint32_t most = MostWorkers(context_.state->settings().config()->run);
  if (wanted <= most) return wanted;
  context_.log.Warning(
      "more workers were asked for than this run can have now; the others are not started: each needs a part "
      "of the shared data (data.partitions), and limits.max_workers holds",
      {{"asked_for", wanted}, {"started", most}});
  return most;
}

}  // namespace atl
