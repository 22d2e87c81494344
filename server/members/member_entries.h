#ifndef ATOLL_SERVER_MEMBERS_MEMBER_ENTRIES_H_
#define ATOLL_SERVER_MEMBERS_MEMBER_ENTRIES_H_

#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "server/members/member_registry.h"
#include "storage/run_store.h"

namespace atl {

// What is stored of members, so that it outlives the coordinator.

/// Absent: no member.
std::optional<WorkerEntry> EntryOf(const MemberRegistry& members, const WorkerName& name);
/// The entry of this member when an operator has removed it.
WorkerEntry EntryOfRemoved(const MemberRegistry& members, WorkerEntry entry);
/// What takes the place of this member's record when it is forgotten; nullopt: nothing, for another member
/// keeps the newest incarnation.
std::optional<WorkerEntry> TombstoneOf(const MemberRegistry& members, const WorkerName& name);
/// Names of the members whose records MemberRegistry::ForgetData would change.
std::vector<WorkerName> WithCountedData(const MemberRegistry& members);

/// Told to drain and not obeyed yet, live or lost, or departed because an operator drained them, and not
/// back since; in order of name.
std::vector<WorkerName> DrainedOf(const MemberRegistry& members);
/// It is wanted again. Whether it was drained, or told to and lost. A live one is told on.
bool CancelDrain(MemberRegistry& members, const WorkerName& name);

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_MEMBER_ENTRIES_H_
