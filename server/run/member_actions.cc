#include "server/run/member_actions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/members/member_entries.h"
#include "server/members/member_lists.h"

namespace atl {
namespace {

// Names at one tick: what they cost the disk is spread over time.
constexpr size_t kForgottenAtOnce = 1000;

/// A resync ends with the next pull, so it must not take the place of a command that stands until this life
/// of the worker ends. Such a worker takes no parameters along, and pulls the published ones when it joins
/// again.
absl::Status CheckResync(const WorkerName& worker, WorkerCommand pending) {
  switch (pending) {
    case WorkerCommand::kDrain:
      return absl::FailedPreconditionError(
          absl::StrFormat("worker '%s' was told to drain, and a resync would cancel that; to keep it in the "
                          "run, call `atollctl workers restart %s` instead",
                          worker, worker));
    case WorkerCommand::kRestart:
      return absl::FailedPreconditionError(absl::StrFormat(
          "worker '%s' was told to restart, and pulls the published version when it joins again; a resync "
          "would cancel the restart",
          worker));
    case WorkerCommand::kStop:
      return absl::FailedPreconditionError(
          absl::StrFormat("worker '%s' was told to stop, and a resync would cancel that", worker));
    case WorkerCommand::kNone:
    case WorkerCommand::kResync:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkerView> MemberActions::Worker(const WorkerName& worker, MonoTime now) const {
  MutexLock lock(&core_.mutex);
  const Member* member = core_.members.membership().Find(worker);
  if (member == nullptr) return UnknownWorker(worker);
  WorkerView view = WorkerViewOf(core_.members, *member, now);
  view.offences = core_.offences.Of(worker);
  return view;
}

absl::Status MemberActions::SetCommand(const WorkerName& worker, const PendingCommand& command,
                                       Effects& effects) {
  MutexLock lock(&core_.mutex);
  const Member* member = core_.members.membership().Find(worker);
  if (member == nullptr) return UnknownWorker(worker);
  if (!member->live()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("worker '%s' is no live member (%s): only live members take commands", worker,
                        std::string(MemberStateName(member->state))));
  }
  const bool drained = member->state == MemberState::kDraining;
  if (command.command == WorkerCommand::kResync) {
    ATOLL_RETURN_IF_ERROR(CheckResync(worker, core_.members.command(worker).command));
  } else {
    effects.members.push_back(worker);
  }
  core_.members.SetCommand(worker, command);
  effects.rounds_changed = drained != (command.command == WorkerCommand::kDrain);
  return absl::OkStatus();
}

absl::Status MemberActions::Evict(const WorkerName& worker, const std::string& why, MonoTime now,
                                  Effects& effects) {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(CheckAction(MemberAction::kEvict, worker));
  Remove(worker, why, now, effects);
  return absl::OkStatus();
}

absl::Status MemberActions::SetBanned(const WorkerName& worker, bool banned, const std::string& why,
                                      MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(CheckAction(banned ? MemberAction::kBan : MemberAction::kUnban, worker));
  if (banned) {
    Ban(worker, why, now, effects);
    return absl::OkStatus();
  }
  core_.members.SetBanned(worker, false);
  core_.rejected_joins.Unbanned(worker);
  core_.offences.Forgive(worker, core_.NewestHead());
  effects.members.push_back(worker);
  return absl::OkStatus();
}

void MemberActions::Remove(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects) {
  (void)core_.members.membership().Evict(worker, now);
  // A drain that it had no time to obey stays: a process of it that joins again must still leave, and the
  // launcher's next life must not start it in place of a wanted worker.
  if (core_.members.command(worker).command != WorkerCommand::kDrain) {
    core_.members.SetCommand(worker, PendingCommand{});
  }
  effects.members.push_back(worker);
  effects.Event(EventKind::kWorkerLeft, worker,
                absl::StrFormat("worker '%s' was removed%s", worker, Because(why)));
  effects.rounds_changed = true;
  core_.RefreshGrant(effects);
  progress_.AnnounceEnd(now, effects);
}

void MemberActions::Ban(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects) {
  core_.members.SetBanned(worker, true);
  if (core_.members.membership().Find(worker)->state != MemberState::kLeft) Remove(worker, why, now, effects);
  effects.Event(EventKind::kWorkerBanned, worker,
                absl::StrFormat("the name '%s' is refused from here on%s", worker, Because(why)));
  effects.members.push_back(worker);
}

void MemberActions::BanByRule(const std::vector<OffenceTracker::Ban>& bans, MonoTime now, Effects& effects) {
  for (const OffenceTracker::Ban& ban : bans) {
    if (core_.members.membership().Find(ban.worker) == nullptr || core_.members.banned(ban.worker)) continue;
    ++effects.banned_by_rule;
    Ban(ban.worker, absl::StrFormat("%s; `atollctl workers unban %s` lets it back", ban.why, ban.worker), now,
        effects);
  }
}

absl::StatusOr<MemberRecords> MemberActions::RecordsAfter(MemberAction action,
                                                          const WorkerName& worker) const {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(CheckAction(action, worker));
  MemberRecords records;
  if (action == MemberAction::kForget) {
    AddForgotten(worker, records);
    return records;
  }
  WorkerEntry entry = core_.Entry(worker);
  if (action == MemberAction::kUnban) {
    entry.banned = false;
    if (const Version newest = core_.NewestHead(); newest != Version()) entry.forgiven_until = newest.value();
  } else {
    entry = EntryOfRemoved(core_.members, std::move(entry));
    entry.banned = entry.banned || action == MemberAction::kBan;
  }
  records.stored.push_back(std::move(entry));
  return records;
}

absl::StatusOr<MemberRecords> MemberActions::RecordsAfterForgetting(Duration age, MonoTime now) const {
  MutexLock lock(&core_.mutex);
  MemberRecords records;
  for (const WorkerName& name :
       core_.members.Forgettable(age, core_.members.membership().counts().names, now)) {
    if (CheckAction(MemberAction::kForget, name).ok()) AddForgotten(name, records);
  }
  return records;
}

MemberRecords MemberActions::RecordsWithoutDataset() const {
  MutexLock lock(&core_.mutex);
  MemberRecords records;
  for (const WorkerName& name : WithCountedData(core_.members)) {
    records.stored.push_back(core_.Entry(name));
    records.stored.back().dataset_fingerprint.clear();
  }
  return records;
}

absl::Status MemberActions::CheckAction(MemberAction action, const WorkerName& worker) const {
  const Member* member = core_.members.membership().Find(worker);
  if (member == nullptr) return UnknownWorker(worker);
  const bool banned = core_.members.banned(worker);
  switch (action) {
    case MemberAction::kEvict:
      if (member->state != MemberState::kLeft) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrFormat("worker '%s' has left already", worker));
    case MemberAction::kBan:
    case MemberAction::kUnban:
      if (banned != (action == MemberAction::kBan)) return absl::OkStatus();
      return absl::FailedPreconditionError(
          absl::StrFormat("the name '%s' is %s", worker, banned ? "banned already" : "not banned"));
    case MemberAction::kForget:
      return CheckForget(core_.members, worker);
  }
  return absl::InvalidArgumentError("action: no such action");
}

void MemberActions::AddForgotten(const WorkerName& worker, MemberRecords& records) const {
  if (std::optional<WorkerEntry> tombstone = TombstoneOf(core_.members, worker)) {
    records.stored.push_back(*std::move(tombstone));
  } else {
    records.removed.push_back(worker);
  }
}

absl::Status MemberActions::Forget(const WorkerName& worker, Effects& effects) {
  MutexLock lock(&core_.mutex);
  return ForgetOne(worker, effects);
}

absl::Status MemberActions::ForgetOne(const WorkerName& name, Effects& effects) {
  ATOLL_RETURN_IF_ERROR(CheckAction(MemberAction::kForget, name));
  std::optional<WorkerEntry> tombstone = TombstoneOf(core_.members, name);
  ATOLL_RETURN_IF_ERROR(core_.members.Forget(name));
  core_.evaluation_assignment.Forget(name);
  core_.offences.Forget(name);
  if (tombstone) {
    effects.tombstones.push_back(*std::move(tombstone));
  } else {
    effects.forgotten.push_back(name);
  }
  return absl::OkStatus();
}

void MemberActions::ForgetOld(MonoTime now, Effects& effects) {
  for (WorkerName& name : std::exchange(stray_names_, {})) effects.forgotten.push_back(std::move(name));
  const Duration age = core_.configs.run().forget_workers_after;
  if (age == Duration(0)) return;
  for (const WorkerName& name : core_.members.Forgettable(age, kForgottenAtOnce, now)) {
    (void)ForgetOne(name, effects);
  }
}

void MemberActions::ResetDataset(Effects& effects) {
  MutexLock lock(&core_.mutex);
  effects.members = core_.members.ForgetData();
}

std::vector<WorkerName> MemberActions::Drained() const {
  MutexLock lock(&core_.mutex);
  return DrainedOf(core_.members);
}

void MemberActions::CancelDrains(const std::vector<WorkerName>& wanted, Effects& effects) {
  MutexLock lock(&core_.mutex);
  for (const WorkerName& name : wanted) {
    if (CancelDrain(core_.members, name)) effects.members.push_back(name);
  }
}

uint32_t MemberActions::LiveTrainersExcept(const std::function<bool(const WorkerName&)>& except) const {
  std::vector<WorkerName> live;
  {
    MutexLock lock(&core_.mutex);
    live = LiveOf(core_.members, WorkerRole::kTrainer);
  }
  return static_cast<uint32_t>(
      std::ranges::count_if(live, [&](const WorkerName& name) { return !except(name); }));
}

void MemberActions::ForgetStrays(std::vector<WorkerName> names) { stray_names_ = std::move(names); }

void MemberActions::RestoreOffences(const Recovery& recovery) {
  for (const WorkerEntry& entry : recovery.workers) {
    core_.offences.Forgive(entry.name, Version(entry.forgiven_until));
  }
  std::vector<const RoundRecord*> records;
  for (const RoundRecord& record : recovery.rounds) {
    if (record.epoch == core_.identity.epoch) records.push_back(&record);
    core_.privacy.Note(record);
  }
  std::ranges::stable_sort(records, {}, [](const RoundRecord* record) { return record->closed_unix_ns; });
  for (const RoundRecord* record : records) {
    // Who was due for the last one may not have been written down as banned any more.
    due_bans_ = core_.offences.Note(core_.configs.run().offenders, *record);
  }
}

void MemberActions::BanDue(MonoTime now, Effects& effects) {
  BanByRule(std::exchange(due_bans_, {}), now, effects);
}

void MemberActions::BeginEpoch() {
  core_.offences.BeginEpoch();
  due_bans_.clear();
}

}  // namespace atl
