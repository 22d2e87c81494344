#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/run/coordinator_state.h"

// What operators do to members: whether it may be done, and the records of members when it is done.

namespace atl {

absl::Status CoordinatorState::CheckAction(MemberAction action, const WorkerName& worker) const {
  const Member* member = members_.membership().Find(worker);
  if (member == nullptr) return UnknownWorker(worker);
  const bool banned = members_.banned(worker);
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
      return members_.CheckForget(worker);
  }
  return absl::InvalidArgumentError("action: no such action");
}

absl::Status CoordinatorState::UnknownWorker(const WorkerName& worker) {
  return absl::NotFoundError(absl::StrFormat("no worker of the name '%s' was ever seen in this run", worker));
}

Version CoordinatorState::NewestHead() const {
  Version newest;
  for (const FragmentRound& fragment : fragments_) newest = std::max(newest, fragment.head());
  return newest;
}

WorkerEntry CoordinatorState::EntryLocked(const WorkerName& worker) const {
  WorkerEntry entry = *members_.Entry(worker);
  entry.forgiven_until = offences_.forgiven_until(worker).value();
  return entry;
}

void CoordinatorState::AddForgotten(const WorkerName& worker, MemberRecords& records) const {
  if (std::optional<WorkerEntry> tombstone = members_.Tombstone(worker)) {
    records.stored.push_back(*std::move(tombstone));
  } else {
    records.removed.push_back(worker);
  }
}

absl::StatusOr<MemberRecords> CoordinatorState::RecordsAfter(MemberAction action,
                                                             const WorkerName& worker) const {
  MutexLock lock(&mutex_);
  ATOLL_RETURN_IF_ERROR(CheckAction(action, worker));
  MemberRecords records;
  if (action == MemberAction::kForget) {
    AddForgotten(worker, records);
    return records;
  }
  WorkerEntry entry = EntryLocked(worker);
  if (action == MemberAction::kUnban) {
    entry.banned = false;
    if (const Version newest = NewestHead(); newest != Version()) entry.forgiven_until = newest.value();
  } else {
    entry = members_.EntryOfRemoved(std::move(entry));
    entry.banned = entry.banned || action == MemberAction::kBan;
  }
  records.stored.push_back(std::move(entry));
  return records;
}

absl::StatusOr<MemberRecords> CoordinatorState::RecordsAfterForgetting(Duration age, MonoTime now) const {
  MutexLock lock(&mutex_);
  MemberRecords records;
  for (const WorkerName& name : members_.Forgettable(age, members_.membership().names(), now)) {
    if (CheckAction(MemberAction::kForget, name).ok()) AddForgotten(name, records);
  }
  return records;
}

MemberRecords CoordinatorState::RecordsWithoutDataset() const {
  MutexLock lock(&mutex_);
  MemberRecords records;
  for (const WorkerName& name : members_.WithCountedData()) {
    records.stored.push_back(EntryLocked(name));
    records.stored.back().dataset_fingerprint.clear();
  }
  return records;
}

}  // namespace atl
