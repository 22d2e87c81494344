#include "server/admin/config_actions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/human.h"
#include "common/status.h"
#include "core/model_check.h"
#include "core/schedule.h"
#include "server/admin/audit.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

std::string Asked(const std::vector<ConfigSetting>& settings, bool dry_run) {
  std::vector<std::string> parts;
  for (const ConfigSetting& setting : settings) parts.push_back(setting.path + "=" + setting.value);
  return absl::StrFormat("set %s%s", absl::StrJoin(parts, " "), dry_run ? " (only checked)" : "");
}

std::string Outcome(const ConfigView& config) {
  if (config.changes.empty()) {
    return absl::StrFormat("nothing to change: version %d has these values", config.version);
  }
  return absl::StrFormat("version %d: %s", config.version, absl::StrJoin(config.changes, ", "));
}

/// The last rounds of a run may have more tokens than planned.
absl::Status CheckGoesOn(const RunOptions& before, const RunOptions& after, uint64_t committed_tokens) {
  if (committed_tokens < after.total_tokens()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "rounds: the run has trained on %s tokens already, and %s more would make %s: it would stay finished. "
      "Nothing was changed. Extend it by at least %d",
      HumanCount(static_cast<double>(committed_tokens)), Counted(after.rounds - before.rounds, "round"),
      HumanCount(static_cast<double>(after.total_tokens())),
      (committed_tokens - before.total_tokens()) / before.tokens_per_round() + 1));
}

}  // namespace

ConfigActions::ConfigActions(const CoordinatorContext& context, AdminLocks* locks, const Parts& parts,
                             ConfigHistory configs)
    : context_(context),
      locks_(*locks),
      driver_(parts.driver),
      launcher_(parts.launcher),
      configs_(std::move(configs)) {}

absl::StatusOr<ConfigView> ConfigActions::Set(const AdminCaller& caller,
                                              const std::vector<ConfigSetting>& settings,
                                              uint64_t expected_version, bool dry_run) {
  absl::StatusOr<ConfigView> changed = ConfigView();
  {
    MutexLock lock(&locks_.state);
    changed = Change(caller, settings, expected_version, dry_run);
  }
  // Asking what would happen changes nothing.
  if (dry_run) return changed;
  WriteAudit(context_, caller, "set_config", Asked(settings, dry_run), changed.status(),
             changed.ok() ? Outcome(*changed) : "");
  return changed;
}

absl::StatusOr<ConfigView> ConfigActions::Change(const AdminCaller& caller,
                                                 const std::vector<ConfigSetting>& settings,
                                                 uint64_t expected_version, bool dry_run) {
  const std::string author = CallerName(caller);
  const int64_t now_unix_ns = context_.clock->WallNow().time_since_epoch().count();
  absl::StatusOr<ConfigHistory::Proposal> proposal = ConfigHistory::Proposal();
  {
    MutexLock lock(&configs_mutex_);
    proposal = configs_.Propose(settings, expected_version, author, now_unix_ns);
  }
  ATOLL_RETURN_IF_ERROR(proposal.status());
  ATOLL_RETURN_IF_ERROR(context_.state->control().CheckOpen());
  ATOLL_RETURN_IF_ERROR(
      CheckContributionBudget(proposal->snapshot->run, context_.state->settings().Layouts()));
  if (const RunModel model = context_.state->seeding().model(); model.known()) {
    ATOLL_RETURN_IF_ERROR(CheckAveragedTensors(proposal->snapshot->run, model.manifest()));
  }
  ATOLL_RETURN_IF_ERROR(CheckLease(proposal->snapshot->run));
  const double position = context_.state->progress().NextRoundPosition();
  const double rate = LearningRateAt(context_.state->settings().config()->run, position);
  const double new_rate = LearningRateAt(proposal->snapshot->run, position);
  if (std::abs(new_rate - rate) > 1e-6 * rate) {
    proposal->changes.push_back(
        absl::StrFormat("the learning rate of the next round: %.6g -> %.6g", rate, new_rate));
  }
  if (!dry_run && !proposal->changes.empty()) ATOLL_RETURN_IF_ERROR(Keep(*proposal, author));
  return ConfigView{.version = proposal->entry.version,
                    .bytes = proposal->entry.bytes,
                    .unix_ns = now_unix_ns,
                    .author = author,
                    .changes = proposal->changes};
}

absl::Status ConfigActions::Keep(const ConfigHistory::Proposal& proposal, const std::string& author) {
  // A head is stamped with the newest configuration that is recorded, so that a restart opens its round
  // with it again: no version may be made between the record and its coming into force.
  absl::Status kept;
  driver_->BetweenSteps([&] {
    kept = context_.store->PutConfig(proposal.entry);
    if (kept.ok()) PutInForce(proposal, author);
  });
  return kept.ok() ? kept : ToRejection(kept);
}

absl::StatusOr<ExtensionView> ConfigActions::ExtendRun(const AdminCaller& caller, uint32_t rounds,
                                                       uint64_t expected_version, bool dry_run) {
  absl::StatusOr<ExtensionView> extended = ExtensionView();
  {
    MutexLock lock(&locks_.state);
    extended = Extend(caller, rounds, expected_version, dry_run);
  }
  if (dry_run) return extended;
  // Workers that left because the run was finished are started again.
  if (extended.ok() && extended->reopened && launcher_ != nullptr) {
    const MutexLock launching(&locks_.launching);
    const absl::Status started = launcher_->StartAgain();
    if (!started.ok()) extended = started;
  }
  WriteAudit(context_, caller, "extend_run",
             absl::StrFormat("extend the run by %s", Counted(rounds, "round")), extended.status(),
             extended.ok() ? absl::StrFormat("%d rounds before, %d now; learning rate %g before, %g now",
                                             extended->rounds_before, extended->rounds_after,
                                             extended->rate_before, extended->rate_after)
                           : "");
  return extended;
}

absl::StatusOr<ExtensionView> ConfigActions::Extend(const AdminCaller& caller, uint32_t rounds,
                                                    uint64_t expected_version, bool dry_run) {
  ATOLL_RETURN_IF_ERROR(context_.state->control().CheckNotStopped());
  const std::string author = CallerName(caller);
  const RunOptions before = context_.state->settings().config()->run;
  absl::StatusOr<ConfigHistory::Proposal> proposal = ConfigHistory::Proposal();
  {
    MutexLock lock(&configs_mutex_);
    proposal =
        configs_.ProposeExtension(rounds, context_.state->progress().NextRoundPosition(), expected_version,
                                  author, context_.clock->WallNow().time_since_epoch().count());
  }
  ATOLL_RETURN_IF_ERROR(proposal.status());
  const RunOptions& after = proposal->snapshot->run;
  ATOLL_RETURN_IF_ERROR(CheckGoesOn(before, after, context_.state->progress().CommittedTokens()));
  const double position = context_.state->progress().Position();
  ExtensionView view{.config_version = context_.state->settings().config()->version,
                     .rounds_before = before.rounds,
                     .rounds_after = after.rounds,
                     .position = position,
                     .total_steps_before = before.total_steps(),
                     .total_steps_after = after.total_steps(),
                     .rate_before = LearningRateAt(before, position),
                     .rate_after = LearningRateAt(after, position),
                     .final_rate = LearningRateAt(after, static_cast<double>(after.total_steps())),
                     .reopened = context_.state->progress().finished()};
  if (dry_run) return view;
  ATOLL_RETURN_IF_ERROR(Keep(*proposal, author));
  view.config_version = proposal->entry.version;
  Effects effects;
  for (const FragmentId fragment :
       context_.state->progress().ResumeFinished(context_.clock->Now(), effects)) {
    context_.published_versions->Reopen(fragment);
  }
  (void)context_.effect_executor->Execute(effects);
  return view;
}

absl::Status ConfigActions::CheckLease(const RunOptions& run) const {
  // Workers look so often whether a heartbeat is due (Heartbeater), by the lease that they joined with.
  const Duration shortest = 3 * context_.options.heartbeat / 4;
  if (run.round.lease >= shortest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "round.lease_s: %g s are too short for the workers that are there, which were asked to be heard of "
      "every %g s; "
      "at least %g s, or start the coordinator and them with a file that says so",
      ToSeconds(run.round.lease), ToSeconds(context_.options.heartbeat), ToSeconds(shortest)));
}

void ConfigActions::PutInForce(const ConfigHistory::Proposal& proposal, const std::string& author) {
  {
    MutexLock lock(&configs_mutex_);
    configs_.Record(proposal.entry);
  }
  const RunOptions& run = proposal.snapshot->run;
  // Open rounds keep their own limit to their end.
  context_.store->KeepLate(std::max(context_.state->settings().StalenessLimit(), run.round.staleness_limit));
  Effects effects;
  context_.state->settings().Configure(proposal.snapshot, effects);
  context_.budget->SetCapacity(context_.state->settings().ContributionBudget());
  effects.Event(EventKind::kConfigChanged, "",
                absl::StrFormat("configuration version %d by %s, in force from the next round: %s",
                                proposal.entry.version, author, absl::StrJoin(proposal.changes, ", ")));
  (void)context_.effect_executor->Execute(effects);
}

absl::StatusOr<std::vector<ConfigView>> ConfigActions::List() {
  MutexLock lock(&configs_mutex_);
  return configs_.List();
}

RecordedRuns ConfigActions::Runs() {
  RecordedRuns runs{.by_version = {}, .newest = context_.state->settings().config()->run};
  MutexLock lock(&configs_mutex_);
  runs.by_version = configs_.Runs();
  return runs;
}

}  // namespace atl
