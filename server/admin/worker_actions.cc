#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "core/membership.h"
#include "server/admin_impl.h"
#include "server/storage_refusal.h"
#include "server/worker_count.h"

// Drain, restart, resync; evict, ban; add.

namespace atoll {
namespace {

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

std::string Asked(const WorkerOrder& order) {
  if (order.older_than) {
    return absl::StrFormat("forget workers gone for longer than %s", HumanDuration(*order.older_than));
  }
  std::string text = absl::StrFormat("%s worker '%s'", std::string(Name(order.action)), order.worker);
  if (order.at_once) text += ", at once";
  if (!order.reason.empty()) text += absl::StrFormat(" (%s)", order.reason);
  return text;
}

}  // namespace

absl::StatusOr<std::string> AdminImpl::ControlWorker(const AdminCaller& caller, const WorkerOrder& order) {
  const std::string why = absl::StrFormat("%s by %s%s", std::string(Name(order.action)), CallerName(caller),
                                          order.reason.empty() ? std::string() : ": " + order.reason);
  const absl::StatusOr<std::string> done = ActAlone(order, why);
  Audit(caller, std::string(Name(order.action)) + "_worker", Asked(order), done.status(),
        done.ok() ? *done : "");
  return done;
}

absl::StatusOr<std::string> AdminImpl::ActAlone(const WorkerOrder& order, const std::string& why) {
  if (order.action == WorkerAction::kRestart) {
    const MutexLock launching(&launching_mutex_);
    return Restart(order);
  }
  if (order.action == WorkerAction::kDrain && launcher_ != nullptr && launcher_->Owns(order.worker)) {
    const MutexLock launching(&launching_mutex_);
    const MutexLock lock(&mutex_);
    return Act(order, why);
  }
  const MutexLock lock(&mutex_);
  return Act(order, why);
}

absl::StatusOr<std::string> AdminImpl::Act(const WorkerOrder& order, const std::string& why) {
  if (order.action == WorkerAction::kForget) return Forget(order);
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(order.worker));
  const std::string when = order.at_once ? "pushes what it has done" : "finishes its round, pushes";
  switch (order.action) {
    case WorkerAction::kDrain:
      return Drain(order, when + " and leaves");
    case WorkerAction::kRestart:
      break;  // ActAlone
    case WorkerAction::kResync:
      return Tell(order, CommandView::kResync, "drops its local progress and pulls the head");
    case WorkerAction::kEvict: {
      ATOLL_RETURN_IF_ERROR(RecordThen(MemberAction::kEvict, order.worker, [&](Effects& effects) {
        return services_.book->Evict(order.worker, why, services_.clock->Now(), effects);
      }));
      return absl::StrFormat(
          "worker '%s' is a member no more; what it contributed stays, and its process may join again",
          order.worker);
    }
    case WorkerAction::kBan:
      return SetBanned(order, why, true);
    case WorkerAction::kUnban:
      return SetBanned(order, why, false);
    case WorkerAction::kForget:
      return Forget(order);
  }
  return absl::InvalidArgumentError("action: no such action");
}

absl::StatusOr<std::string> AdminImpl::Tell(const WorkerOrder& order, CommandView command,
                                            const std::string& what) {
  Effects effects;
  ATOLL_RETURN_IF_ERROR(services_.book->Order(
      order.worker, WorkerCommand{.command = command, .at_once = order.at_once}, effects));
  const absl::Status stored = services_.outbox->Send(effects);
  std::string answer =
      absl::StrFormat("worker '%s' is told with its next heartbeat (within %.1f s); it then %s", order.worker,
                      ToSeconds(services_.options.heartbeat), what);
  if (!stored.ok()) {
    answer += absl::StrFormat(
        "; should the coordinator be restarted before, tell it again, for that could not be "
        "recorded: %s",
        std::string(stored.message()));
  }
  return answer;
}

absl::Status AdminImpl::CheckHasJoined(const WorkerName& name) const {
  if (launcher_ == nullptr || services_.book->Worker(name, services_.clock->Now()).ok()) {
    return absl::OkStatus();
  }
  const LauncherView view = launcher_->view();
  if (std::ranges::find(view.wanted, name) == view.wanted.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "worker '%s' has not joined the run yet, so it has no round to finish: drain it when it "
      "has joined, or call `atollctl workers scale %d` to run one worker less",
      name, view.target - 1));
}

absl::StatusOr<std::string> AdminImpl::Drain(const WorkerOrder& order, const std::string& what) {
  ATOLL_RETURN_IF_ERROR(CheckHasJoined(order.worker));
  ATOLL_ASSIGN_OR_RETURN(std::string answer, Tell(order, CommandView::kDrain, what));
  if (launcher_ == nullptr) return answer;
  ATOLL_ASSIGN_OR_RETURN(const std::string note, launcher_->LetGo(order.worker));
  if (note.empty()) return answer;
  return answer + "; " + note + NoteWorkers(launcher_->view().target);
}

absl::StatusOr<std::string> AdminImpl::Restart(const WorkerOrder& order) {
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(order.worker));
  {
    const MutexLock lock(&mutex_);
    ATOLL_ASSIGN_OR_RETURN(const bool must_be_started, MustBeStarted(order));
    if (!must_be_started) return RestartByItself(order);
  }
  return RestartFromOutside(order.worker);
}

absl::StatusOr<bool> AdminImpl::MustBeStarted(const WorkerOrder& order) {
  ATOLL_RETURN_IF_ERROR(services_.book->CheckNotStopped());
  const auto worker = services_.book->Worker(order.worker, services_.clock->Now());
  const bool live = worker.ok() && worker->lease_remaining_s > 0;
  if (worker.ok() && worker->banned) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "worker '%s' is banned, so a new process of it would be refused: call `atollctl workers unban %s` "
        "first",
        order.worker, order.worker));
  }
  if (launcher_ != nullptr && launcher_->IsLetGo(order.worker)) {
    const uint64_t wanted = uint64_t{launcher_->view().target} + 1;
    ATOLL_RETURN_IF_ERROR(CheckMostWorkers(wanted, services_.book->config()->run, "restart"));
    ATOLL_RETURN_IF_ERROR(CheckPartitions(wanted, "restart"));
  }
  if (live) return false;
  // A process that does not answer, or one that died before it ever joined, can only be ended from outside.
  if (launcher_ != nullptr && launcher_->Owns(order.worker)) return true;
  if (!worker.ok()) return worker.status();
  return absl::FailedPreconditionError(absl::StrFormat(
      "worker '%s' is %s, and it is none that this coordinator launched: start it where it runs",
      order.worker, worker->state));
}

absl::StatusOr<std::string> AdminImpl::RestartByItself(const WorkerOrder& order) {
  ATOLL_ASSIGN_OR_RETURN(const std::string answer,
                         Tell(order, CommandView::kRestart,
                              order.at_once ? "pushes what it has done and starts again under its name"
                                            : "finishes its round, pushes, and starts again under its name"));
  if (launcher_ == nullptr || !launcher_->IsLetGo(order.worker)) return answer;
  launcher_->WantAgain(order.worker);
  const uint32_t wanted = launcher_->view().target;
  return absl::StrFormat("%s; it was being drained, and the launcher keeps it running again: %d wanted now",
                         answer, wanted) +
         NoteWorkers(wanted);
}

absl::StatusOr<std::string> AdminImpl::RestartFromOutside(const WorkerName& worker) {
  const uint32_t wanted = launcher_->view().target;
  ATOLL_RETURN_IF_ERROR(launcher_->Restart(worker));
  const MutexLock lock(&mutex_);
  launcher_->WantAgain(worker);
  KeepTakenBackDrains();
  const uint32_t wanted_now = launcher_->view().target;
  if (wanted_now != wanted) {
    return absl::StrFormat("worker '%s' was drained; the launcher starts it again: %d wanted now", worker,
                           wanted_now) +
           NoteWorkers(wanted_now);
  }
  return absl::StrFormat("worker '%s' does not answer; the launcher ends its process and starts it again",
                         worker);
}

absl::StatusOr<std::string> AdminImpl::Forget(const WorkerOrder& order) {
  if (order.older_than) return ForgetOlderThan(*order.older_than);
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(order.worker));
  ATOLL_RETURN_IF_ERROR(RecordThen(MemberAction::kForget, order.worker, [&](Effects& effects) {
    return services_.book->Forget(order.worker, effects);
  }));
  return absl::StrFormat("worker '%s' is forgotten; the next worker of that name joins as a new one",
                         order.worker);
}

absl::StatusOr<std::string> AdminImpl::ForgetOlderThan(Duration age) {
  size_t count = 0;
  ATOLL_RETURN_IF_ERROR(services_.outbox->RecordThen(
      [&] { return services_.book->RecordsAfterForgetting(age, services_.clock->Now()); },
      [&](const std::set<WorkerName>& names, Effects& effects) {
        // Those that were recorded, and no others. One that has joined meanwhile stores a record of its own.
        for (const WorkerName& name : names) count += services_.book->Forget(name, effects).ok() ? 1 : 0;
        return absl::OkStatus();
      }));
  return Counted(count, "worker") + (count == 1 ? " is forgotten" : " are forgotten");
}

absl::Status AdminImpl::RecordThen(MemberAction action, const WorkerName& worker,
                                   const std::function<absl::Status(Effects&)>& change) {
  return services_.outbox->RecordThen(
      [&] { return services_.book->RecordsAfter(action, worker); },
      [&](const std::set<WorkerName>& recorded, Effects& effects) { return change(effects); });
}

absl::StatusOr<std::string> AdminImpl::SetBanned(const WorkerOrder& order, const std::string& why,
                                                 bool banned) {
  const MemberAction action = banned ? MemberAction::kBan : MemberAction::kUnban;
  ATOLL_RETURN_IF_ERROR(RecordThen(action, order.worker, [&](Effects& effects) {
    return services_.book->SetBanned(order.worker, banned, why, services_.clock->Now(), effects);
  }));
  if (!banned) return absl::StrFormat("a worker of the name '%s' may join again", order.worker);
  return absl::StrFormat("worker '%s' is a member no more, and its name is refused until it is unbanned",
                         order.worker);
}

absl::StatusOr<ScaleResult> AdminImpl::ScaleWorkers(const AdminCaller& caller, std::optional<uint32_t> add,
                                                    std::optional<uint32_t> target) {
  absl::StatusOr<ScaleResult> scaled = ScaleResult();
  {
    const MutexLock launching(&launching_mutex_);
    scaled = Scale(add, target);
  }
  const std::string what = add      ? absl::StrFormat("add %s", Counted(*add, "worker"))
                           : target ? absl::StrFormat("scale to %s", Counted(*target, "worker"))
                                    : std::string("scale workers");
  Audit(caller, "scale_workers", what, scaled.status(),
        scaled.ok() ? absl::StrFormat("%d before, %d wanted now", scaled->before, scaled->target) : "");
  return scaled;
}

absl::Status AdminImpl::RecordScale(std::optional<uint32_t> add, std::optional<uint32_t> target,
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
  ATOLL_RETURN_IF_ERROR(services_.book->CheckNotStopped());
  result.before = launcher_->view().target;
  const uint64_t wanted = target ? *target : uint64_t{result.before} + *add;
  const std::string_view field = add ? "add" : "target";
  ATOLL_RETURN_IF_ERROR(CheckMostWorkers(wanted, services_.book->config()->run, field));
  if (wanted > result.before) ATOLL_RETURN_IF_ERROR(CheckPartitions(wanted, field));
  result.target = static_cast<uint32_t>(wanted);
  return RememberWorkers(result.target);
}

absl::StatusOr<ScaleResult> AdminImpl::Scale(std::optional<uint32_t> add, std::optional<uint32_t> target) {
  ScaleResult result;
  const ControlEntry before = services_.book->control();
  {
    const MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(RecordScale(add, target, result));
  }
  const absl::Status scaled = launcher_->Scale(result.target);
  if (!scaled.ok()) {
    const MutexLock lock(&mutex_);
    // A number that the cluster refused is not asked for again by the coordinator's next life. The run may
    // have been paused or stopped meanwhile: that stays.
    ControlEntry control = services_.book->control();
    control.workers = before.workers;
    control.workers_at_start = before.workers_at_start;
    ATOLL_RETURN_IF_ERROR(KeepControl(control));
    return scaled;
  }
  {
    // A larger set of pods wants a drained one again.
    const MutexLock lock(&mutex_);
    KeepTakenBackDrains();
  }
  // Not those that run now: those that are to end still do, and a new one may not be there yet.
  result.names = launcher_->view().wanted;
  return result;
}

absl::Status AdminImpl::CheckPartitions(uint64_t wanted, std::string_view field) const {
  const RunOptions& run = services_.book->config()->run;
  const uint64_t others =
      services_.book->LiveTrainersExcept([this](const WorkerName& name) { return launcher_->Owns(name); });
  return CheckPartsOfData(wanted, others, run, field);
}

void AdminImpl::KeepTakenBackDrains() {
  Effects effects;
  services_.book->TakeDrainsBack(launcher_->view().wanted, effects);
  (void)services_.outbox->Send(effects);  // logs what could not be stored
}

std::string AdminImpl::NoteWorkers(uint32_t target) {
  const absl::Status kept = RememberWorkers(target);
  if (kept.ok()) return "";
  return absl::StrFormat(
      "; the number of workers could not be recorded: if the coordinator restarts, call `atollctl workers "
      "scale %d`: %s",
      target, std::string(kept.message()));
}

absl::Status AdminImpl::RememberWorkers(uint32_t target) {
  ControlEntry control = services_.book->control();
  control.workers = target;
  control.workers_at_start = services_.options.launch_workers;
  return KeepControl(control);
}

absl::Status AdminImpl::KeepControl(const ControlEntry& control) {
  const absl::Status kept = services_.store->PutControl(control);
  if (!kept.ok()) return ToRefusal(kept);
  services_.book->SetWorkers(control);
  return absl::OkStatus();
}

std::vector<WorkerName> AdminImpl::DrainedWorkers() const { return services_.book->Drained(); }

uint32_t AdminImpl::WantedWorkers() const {
  const ControlEntry control = services_.book->control();
  const uint32_t at_start = services_.options.launch_workers;
  const uint32_t wanted =
      control.workers_at_start == at_start ? control.workers.value_or(at_start) : at_start;
  const uint32_t most = MostWorkers(services_.book->config()->run);
  if (wanted <= most) return wanted;
  services_.log.Warning(
      "more workers were asked for than this run can have now; the others are not started: each needs a part "
      "of the shared data (data.partitions), and limits.max_workers holds",
      {{"asked_for", wanted}, {"started", most}});
  return most;
}

}  // namespace atoll
