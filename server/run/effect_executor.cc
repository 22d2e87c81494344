#include "server/run/effect_executor.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/status.h"
#include "server/storage_rejection.h"

namespace atl {

absl::Status EffectExecutor::StoreMember(const WorkerName& name) {
  MutexLock lock(&members_mutex_);
  const std::optional<WorkerEntry> entry = state_->members().Entry(name);
  return entry ? store_->PutWorker(*entry) : absl::OkStatus();
}

absl::Status EffectExecutor::ForgetMembers(const Effects& effects, const std::set<WorkerName>& recorded) {
  MutexLock lock(&members_mutex_);
  // One that has joined again meanwhile has a record of its own.
  const auto done = [&](const WorkerName& name) {
    return recorded.contains(name) || state_->members().Entry(name).has_value();
  };
  MemberRecords records{.stored = effects.tombstones, .removed = effects.forgotten};
  std::erase_if(records.stored, [&](const WorkerEntry& tombstone) { return done(tombstone.name); });
  std::erase_if(records.removed, done);
  if (records.stored.empty() && records.removed.empty()) return absl::OkStatus();
  return store_->ReplaceWorkers(records.stored, records.removed);
}

absl::Status EffectExecutor::RecordThen(const Plan& plan, const Change& change) {
  std::set<WorkerName> recorded;
  Effects effects;
  {
    // A call that changes one of these members meanwhile stores its record after this, from the coordinator's
    // state.
    MutexLock lock(&members_mutex_);
    ATOLL_ASSIGN_OR_RETURN(const MemberRecords records, plan());
    recorded.insert(records.removed.begin(), records.removed.end());
    for (const WorkerEntry& entry : records.stored) recorded.insert(entry.name);
    if (!recorded.empty()) {
      const absl::Status stored = store_->ReplaceWorkers(records.stored, records.removed);
      if (!stored.ok()) return ToRejection(stored);
    }
    ATOLL_RETURN_IF_ERROR(change(recorded, effects));
  }
  (void)ExecuteRest(effects, recorded);  // what the caller asked for is stored
  return absl::OkStatus();
}

absl::Status EffectExecutor::Execute(const Effects& effects) { return ExecuteRest(effects, {}); }

void EffectExecutor::Announce(const EventView& event) {
  if (event.round) observer_->OnRoundClosed(*event.round);
  if (event.evaluation) observer_->OnEvaluation(*event.evaluation);
  LogFields fields;
  if (!event.worker.empty()) fields.emplace_back("worker", event.worker);
  if (event.round) {
    fields.emplace_back("train_loss", event.round->train_loss);
    fields.emplace_back("open_s", event.round->open_seconds);
    fields.emplace_back("commit_s", event.round->commit_seconds);
  }
  const bool bad = event.warns || event.kind == EventKind::kWorkerLost || event.kind == EventKind::kRunHeld ||
                   event.kind == EventKind::kStorageFailing ||
                   event.kind == EventKind::kContributionRefused ||
                   event.kind == EventKind::kContributionSuspect || event.kind == EventKind::kWorkerBanned ||
                   event.kind == EventKind::kJoinRefused;
  log_.Log(bad ? LogLevel::kWarning : LogLevel::kInfo, event.message, fields);
  events_->Append(event);
}

absl::Status EffectExecutor::ExecuteRest(const Effects& effects, const std::set<WorkerName>& recorded) {
  absl::Status first;
  for (const WorkerName& name : effects.members) {
    if (recorded.contains(name)) continue;
    const absl::Status stored = StoreMember(name);
    if (stored.ok()) continue;
    log_.Warning("a member's record could not be stored", {{"worker", name}, {"error", stored}});
    first.Update(stored);
  }
  if (forget_) {
    for (const WorkerName& name : effects.forgotten) forget_(name);
    for (const WorkerEntry& tombstone : effects.tombstones) forget_(tombstone.name);
  }
  const bool forgets = !effects.forgotten.empty() || !effects.tombstones.empty();
  const absl::Status forgotten = forgets ? ForgetMembers(effects, recorded) : absl::OkStatus();
  if (!forgotten.ok()) {
    log_.Warning("the records of forgotten workers could not be deleted; the names are back after a restart",
                 {{"workers", effects.forgotten.size() + effects.tombstones.size()}, {"error", forgotten}});
  }
  first.Update(forgotten);
  for (const EvaluationEntry& evaluation : effects.evaluations) {
    const absl::Status stored = store_->PutEvaluation(evaluation);
    if (!stored.ok()) {
      log_.Warning("an evaluation could not be stored; it is lost with the next restart",
                   {{"version", evaluation.version.value()}, {"error", stored}});
    }
  }
  for (const EventView& event : effects.events) Announce(event);
  for (const Offence offence : effects.offences) observer_->OnOffence(offence);
  for (uint32_t i = 0; i < effects.banned_by_rule; ++i) observer_->OnBannedByRule();
  for (const std::string& reason : effects.joins_refused) {
    observer_->OnJoinRejected(absl::AsciiStrToLower(reason));
  }
  if (effects.rounds_changed && wake_) wake_();
  return first;
}

}  // namespace atl
