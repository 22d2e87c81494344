#include "server/members/member_lists.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"

namespace atl {

std::vector<WorkerName> LiveOf(const MemberRegistry& members, WorkerRole role) {
  std::vector<const Member*> live = members.membership().Live();
  std::erase_if(live, [role](const Member* member) { return member->role != role; });
  const auto order = [](const Member* member) {
    return member->partition.value_or(std::numeric_limits<uint32_t>::max());
  };
  std::ranges::stable_sort(live, {}, order);
  std::vector<WorkerName> names;
  for (const Member* member : live) names.push_back(member->name);
  return names;
}

std::vector<WorkerName> SeedersOf(const MemberRegistry& members) {
  std::vector<WorkerName> seeders;
  for (const WorkerName& name : members.membership().ActiveTrainers()) {
    if (!members.FindAccount(name).manifest_hash.empty()) seeders.push_back(name);
  }
  return seeders;
}

std::optional<MonoTime> MostJoinedAfter(const MemberRegistry& members, MonoTime since,
                                        const std::vector<WorkerName>& names) {
  size_t joined = 0;
  MonoTime last = since;
  for (const WorkerName& name : names) {
    const MonoTime joined_at = members.FindAccount(name).joined_at;
    if (joined_at <= since) continue;
    ++joined;
    last = std::max(last, joined_at);
  }
  return joined > 0 && 2 * joined >= names.size() ? std::optional(last) : std::nullopt;
}

double ReportedPace(const MemberRegistry& members) {
  double sum = 0;
  for (const WorkerName& name : LiveOf(members, WorkerRole::kTrainer)) {
    sum += members.FindAccount(name).progress.tokens_per_second;
  }
  return sum;
}

absl::Status CheckForget(const MemberRegistry& members, const WorkerName& name) {
  if (members.banned(name)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the name '%s' is banned; forgotten, it could join again. Unban it first", name));
  }
  const Member* member = members.membership().Find(name);
  if (member == nullptr || !member->live()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("worker '%s' is live; drain or evict it first", name));
}

DataPart DataPartOf(const MemberRegistry& members, const Member& member) {
  const DataShares& shares = members.assignments().shares();
  const uint32_t partition = member.partition.value_or(0);
  return {
      .partition = partition, .partitions = shares.count(), .samples_consumed = shares.promised(partition)};
}

WorkerView WorkerViewOf(const MemberRegistry& members, const Member& member, MonoTime now) {
  const WorkerAccount& account = members.FindAccount(member.name);
  WorkerView view;
  view.name = member.name;
  view.incarnation = member.incarnation;
  view.role = static_cast<uint8_t>(member.role);
  view.state = std::string(MemberStateName(member.state));
  if (member.live()) view.lease_remaining_s = std::max(0.0, ToSeconds(member.lease_expires_at - now));
  view.device = account.device;
  if (member.partition) {
    view.data = DataPartOf(members, member);
    view.data->samples_consumed = members.assignments().shares().consumed(*member.partition);
  }
  view.inner_steps = members.assignments().steps(member.name);
  view.steps_per_second = members.assignments().steps_per_second(member.name);
  view.progress = account.progress;
  view.seconds_since_heartbeat = ToSeconds(now - account.last_seen_at);
  view.contributions_accepted = account.accepted;
  view.contributions_refused = account.rejected;
  view.push_bytes = account.push_bytes;
  view.pull_bytes = account.pull_bytes;
  view.banned = members.banned(member.name);
  view.pending_command = members.command(member.name).command;
  return view;
}

std::vector<WorkerView> WorkerViews(const MemberRegistry& members, bool all, MonoTime now) {
  std::vector<WorkerView> views;
  for (const Member* member : all ? members.membership().All() : members.membership().Live()) {
    views.push_back(WorkerViewOf(members, *member, now));
  }
  return views;
}

}  // namespace atl
