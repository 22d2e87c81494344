#include "server/admin/admin_impl.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "server/admin/verifier.h"
#include "server/publish/confirmations.h"
#include "server/storage_rejection.h"

namespace atl {

std::string CallerName(const AdminCaller& caller) {
  const bool proven = !caller.how.empty();
  const std::string& name = proven ? caller.proven : caller.user;
  std::vector<std::string> known;
  if (proven) known.push_back(caller.how);
  if (proven && !caller.user.empty() && caller.user != name) known.push_back("calls itself " + caller.user);
  if (!caller.by.empty()) known.push_back("by " + caller.by);
  if (!caller.peer.empty()) known.push_back(caller.peer);
  return absl::StrCat(name.empty() ? "someone" : name,
                      known.empty() ? "" : absl::StrCat(" (", absl::StrJoin(known, ", "), ")"));
}

AdminImpl::AdminImpl(Parts parts)
    : context_(*parts.context),
      keeper_(parts.keeper),
      driver_(parts.driver),
      launcher_(parts.launcher),
      configs_(std::move(parts.configs), parts.config_codec) {}

void AdminImpl::Audit(const AdminCaller& caller, std::string_view action, const std::string& what,
                      const absl::Status& outcome, const std::string& done) {
  const std::string came_of_it =
      outcome.ok() ? done
                   : absl::StrFormat("refused, %s: %s", absl::StatusCodeToString(outcome.code()),
                                     std::string(outcome.message()));
  context_.observer->OnAdminAction(action, outcome.ok());
  Effects effects;
  effects.Event(EventKind::kAdminAction, "",
                absl::StrFormat("%s: %s: %s", CallerName(caller), what, came_of_it));
  (void)context_.effect_executor->Execute(effects);
}

LauncherView AdminImpl::Launched() {
  if (launcher_ != nullptr) return launcher_->view();
  LauncherView none;
  none.kind = "none";
  return none;
}

absl::StatusOr<CheckpointView> AdminImpl::CreateCheckpoint(const AdminCaller& caller,
                                                           const std::string& name) {
  auto made = keeper_->Create(name);
  if (!made.ok() && absl::IsResourceExhausted(made.status())) made = ToRejection(made.status());
  Audit(caller, "checkpoint_create", absl::StrFormat("checkpoint create '%s'", name), made.status(),
        made.ok() ? absl::StrFormat("made '%s'", made->name) : "");
  return made;
}

absl::StatusOr<std::vector<CheckpointView>> AdminImpl::ListCheckpoints(bool check) {
  return keeper_->List(check);
}

absl::StatusOr<RestoreResult> AdminImpl::RestoreCheckpoint(const AdminCaller& caller,
                                                           const std::string& name) {
  absl::StatusOr<RestoreResult> restored = absl::InternalError("not tried");
  bool was_finished = false;
  {
    MutexLock lock(&mutex_);
    was_finished = context_.state->progress().finished();
    const ControlEntry control = context_.state->control().control();
    restored = control.mode == RunMode::kStopped
                   ? absl::FailedPreconditionError("the run is stopped, for good; a restore could not go on")
                   : keeper_->Restore(name);
  }
  // Workers that left because the run was finished are started again, where it goes on.
  if (restored.ok() && was_finished && launcher_ != nullptr) {
    const MutexLock launching(&launching_mutex_);
    if (const absl::Status started = launcher_->StartAgain(); !started.ok()) {
      context_.log.Warning("the launcher did not start the workers of the restored run",
                           {{"error", started.ToString()}});
    }
  }
  Audit(caller, "checkpoint_restore", absl::StrFormat("checkpoint restore '%s'", name), restored.status(),
        restored.ok() ? absl::StrFormat("the run goes on in epoch %016x", restored->epoch.value()) : "");
  return restored;
}

absl::Status AdminImpl::DeleteCheckpoint(const AdminCaller& caller, const std::string& name) {
  const absl::Status deleted = keeper_->Delete(name);
  Audit(caller, "checkpoint_delete", absl::StrFormat("checkpoint delete '%s'", name), deleted, "deleted");
  return deleted;
}

absl::Status AdminImpl::Verify(std::optional<Version> version, const VerifyReport& report) {
  const std::vector<FragmentLayout> layouts = context_.state->settings().Layouts();
  if (layouts.empty()) return absl::FailedPreconditionError("the run is not seeded: there is no version yet");
  // Each takes the memory of a recovery.
  if (verifying_.exchange(true)) {
    return absl::FailedPreconditionError("another verification is under way; wait for it to end");
  }
  Verifier verifier(context_.store, layouts, context_.options.run,
                    [this](FragmentId fragment, Version at, VerifyView& view) {
                      FillVotes(*context_.store, fragment, at, view.confirmed_by, view.denied_by);
                    });
  const absl::Status verified = verifier.Verify(version, report);
  verifying_ = false;
  return verified;
}

}  // namespace atl
