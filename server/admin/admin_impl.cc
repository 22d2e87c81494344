#include "server/admin/admin_impl.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/admin/audit.h"
#include "server/admin/metrics_view.h"
#include "server/admin/round_list.h"
#include "server/admin/verifier.h"
#include "server/publish/confirmations.h"
#include "server/storage_rejection.h"

namespace atl {

AdminImpl::AdminImpl(Parts parts)
    : context_(*parts.context),
      keeper_(parts.keeper),
      launcher_(parts.launcher),
      reader_(context_),
      run_(context_, &locks_),
      configs_(context_, &locks_, {.driver = parts.driver, .launcher = parts.launcher},
               ConfigHistory(std::move(parts.configs), parts.config_codec)),
      workers_(context_, &locks_, parts.launcher) {}

absl::StatusOr<std::string> AdminImpl::ControlRun(const AdminCaller& caller, RunAction action,
                                                  const std::string& reason) {
  return run_.Control(caller, action, reason);
}

absl::StatusOr<std::string> AdminImpl::ControlWorker(const AdminCaller& caller,
                                                     const ControlWorkerCall& call) {
  return workers_.Control(caller, call);
}

absl::StatusOr<ScaleResult> AdminImpl::ScaleWorkers(const AdminCaller& caller, std::optional<uint32_t> add,
                                                    std::optional<uint32_t> target) {
  return workers_.ScaleWorkers(caller, add, target);
}

uint32_t AdminImpl::WantedWorkers() const { return workers_.Wanted(); }

std::vector<WorkerName> AdminImpl::DrainedWorkers() const {
  return context_.state->member_actions().Drained();
}

absl::StatusOr<ConfigView> AdminImpl::SetConfig(const AdminCaller& caller,
                                                const std::vector<ConfigSetting>& settings,
                                                uint64_t expected_version, bool dry_run) {
  return configs_.Set(caller, settings, expected_version, dry_run);
}

absl::StatusOr<ExtensionView> AdminImpl::ExtendRun(const AdminCaller& caller, uint32_t rounds,
                                                   uint64_t expected_version, bool dry_run) {
  return configs_.ExtendRun(caller, rounds, expected_version, dry_run);
}

absl::StatusOr<std::vector<ConfigView>> AdminImpl::ListConfigs() { return configs_.List(); }

MetricsView AdminImpl::GetMetrics() { return MetricsOf(context_); }

absl::Status AdminImpl::ExportMetrics(const MetricSink& sink) {
  const StatusView status =
      context_.state->views().Status(std::numeric_limits<uint32_t>::max(), context_.clock->Now());
  return ExportMetricsOf(context_.store, status, configs_.Runs(), sink);
}

absl::StatusOr<RoundListView> AdminImpl::ListRounds(FragmentId fragment, Version after, uint32_t limit) {
  return RoundsOf(context_, fragment, after, limit);
}

void AdminImpl::Audit(const AdminCaller& caller, std::string_view action, const std::string& what,
                      const absl::Status& outcome, const std::string& done) {
  WriteAudit(context_, caller, action, what, outcome, done);
}

LauncherView AdminImpl::Launched() {
  if (launcher_ != nullptr) return workers_.Launched();
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
    MutexLock lock(&locks_.state);
    was_finished = context_.state->progress().finished();
    const ControlEntry control = context_.state->control().control();
    restored =
        control.mode == RunMode::kStopped
            ? absl::FailedPreconditionError("the run is stopped permanently; a restore could not continue it")
            : keeper_->Restore(name);
  }
  // Workers that left because the run was finished are started again, where it goes on.
  if (restored.ok() && was_finished && launcher_ != nullptr) {
    const MutexLock launching(&locks_.launching);
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
  Verifier verifier(context_.store, layouts, context_.config()->run,
                    [this](FragmentId fragment, Version at, VerifyView& view) {
                      FillVotes(*context_.store, fragment, at, view.confirmed_by, view.denied_by);
                    });
  const absl::Status verified = verifier.Verify(version, report);
  verifying_ = false;
  return verified;
}

}  // namespace atl
