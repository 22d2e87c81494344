#include "server/admin/run_actions.h"

#include <set>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/admin/audit.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

std::string_view Name(RunAction action) {
  switch (action) {
    case RunAction::kPause:
      return "pause";
    case RunAction::kResume:
      return "resume";
    case RunAction::kStop:
      return "stop";
    case RunAction::kCloseRound:
      return "close_round";
    case RunAction::kResetDataset:
      return "reset_dataset";
  }
  return "unknown";
}

}  // namespace

absl::StatusOr<std::string> RunActions::Control(const AdminCaller& caller, RunAction action,
                                                const std::string& reason) {
  absl::StatusOr<std::string> done = std::string();
  {
    MutexLock lock(&locks_.state);
    done = Act(caller, action, reason);
  }
  const std::string name(Name(action));
  WriteAudit(context_, caller, name, reason.empty() ? name : absl::StrFormat("%s (%s)", name, reason),
             done.status(), done.ok() ? *done : "");
  return done;
}

absl::Status RunActions::ChangeMode(RunMode mode, const AdminCaller& caller, const std::string& reason) {
  ATOLL_RETURN_IF_ERROR(context_.state->control().CheckControl(mode));
  ControlEntry control = context_.state->control().control();  // as many workers as before
  control.mode = mode;
  control.unix_ns = context_.clock->WallNow().time_since_epoch().count();
  control.author = CallerName(caller);
  control.reason = reason;
  const absl::Status kept = context_.store->PutControl(control);
  if (!kept.ok()) return ToRejection(kept);
  // Nobody may get a plan between the moment when rounds stop closing and the moment when PublishedVersions
  // knows.
  if (mode == RunMode::kPaused) context_.published_versions->Hold();
  Effects effects;
  context_.state->control().SetControl(control, context_.clock->Now(), effects);
  (void)context_.effect_executor->Execute(effects);
  if (mode == RunMode::kRunning) context_.published_versions->Release();
  return absl::OkStatus();
}

absl::StatusOr<std::string> RunActions::Act(const AdminCaller& caller, RunAction action,
                                            const std::string& reason) {
  switch (action) {
    case RunAction::kPause:
      ATOLL_RETURN_IF_ERROR(ChangeMode(RunMode::kPaused, caller, reason));
      return std::string(
          "the run is paused: workers stop after the inner step in progress and wait. Contributions on their "
          "way "
          "are kept. To switch a worker's machine off, end the worker with SIGTERM first: it pushes the "
          "steps of "
          "its open round");
    case RunAction::kResume:
      ATOLL_RETURN_IF_ERROR(ChangeMode(RunMode::kRunning, caller, reason));
      return std::string("the run goes on; the deadline of the open round counts from now");
    case RunAction::kStop:
      ATOLL_RETURN_IF_ERROR(ChangeMode(RunMode::kStopped, caller, reason));
      return std::string(
          "the run is stopped permanently: the open round closes with what has arrived, then workers leave");
    case RunAction::kResetDataset: {
      ATOLL_RETURN_IF_ERROR(context_.effect_executor->RecordThen(
          [&]() -> absl::StatusOr<MemberRecords> {
            return context_.state->member_actions().RecordsWithoutDataset();
          },
          [&](const std::set<WorkerName>& recorded, Effects& effects) {
            context_.state->member_actions().ResetDataset(effects);
            return absl::OkStatus();
          }));
      return std::string(
          "the run is not tied to token files any more: those of the worker whose contribution is accepted "
          "next are "
          "the run's from then on");
    }
    case RunAction::kCloseRound: {
      Effects effects;
      const std::string why = absl::StrFormat("closed by %s%s", CallerName(caller),
                                              reason.empty() ? std::string() : ": " + reason);
      ATOLL_ASSIGN_OR_RETURN(const uint32_t closed, context_.state->control().CloseRounds(why, effects));
      (void)context_.effect_executor->Execute(effects);
      return closed == 1 ? std::string("the open round closes now, with what has arrived")
                         : absl::StrFormat("the open rounds of %d fragments close now", closed);
    }
  }
  return absl::InvalidArgumentError("action: no such action");
}

}  // namespace atl
