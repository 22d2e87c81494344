#ifndef ATOLL_SERVER_MEMBERS_MEMBER_LISTS_H_
#define ATOLL_SERVER_MEMBERS_MEMBER_LISTS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/ids.h"
#include "core/membership.h"
#include "server/members/member_registry.h"
#include "server/views.h"

namespace atl {

// Who is there, for decisions and for those who look.

/// Live trainers, or evaluators, in order of partition and name.
std::vector<WorkerName> LiveOf(const MemberRegistry& members, WorkerRole role);
/// Active trainers that have the model, in order of name.
std::vector<WorkerName> SeedersOf(const MemberRegistry& members);
/// When the last of these joined, if half of them or more joined after `since`.
std::optional<MonoTime> MostJoinedAfter(const MemberRegistry& members, MonoTime since,
                                        const std::vector<WorkerName>& names);
/// Tokens per second as the live trainers report them.
double ReportedPace(const MemberRegistry& members);

/// FailedPrecondition when MemberRegistry::Forget would refuse this name: it is live, or banned.
absl::Status CheckForget(const MemberRegistry& members, const WorkerName& name);
/// Of a member with a partition: its part of the shared data, and where its next round begins in it.
DataPart DataPartOf(const MemberRegistry& members, const Member& member);

WorkerView WorkerViewOf(const MemberRegistry& members, const Member& member, MonoTime now);
std::vector<WorkerView> WorkerViews(const MemberRegistry& members, bool all, MonoTime now);

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_MEMBER_LISTS_H_
