#include "server/members/member_entries.h"

#include <utility>

namespace atl {

std::optional<WorkerEntry> EntryOf(const MemberRegistry& members, const WorkerName& name) {
  const Member* member = members.membership().Find(name);
  if (member == nullptr) return std::nullopt;
  const WorkerAccount& account = members.FindAccount(name);
  const PendingCommand told = members.command(name);
  const bool kept = member->live() && told.kept();
  // One that was lost before it obeyed stays drained.
  const bool drained = !member->live() && (account.drained || told.command == WorkerCommand::kDrain);
  return WorkerEntry{.name = member->name,
                     .secret_hash = member->secret_hash,
                     .incarnation = member->incarnation,
                     .role = static_cast<uint8_t>(member->role),
                     .partition = member->partition,
                     .departed = !member->live(),
                     .banned = members.banned(name),
                     .public_key = account.public_key,
                     // Only files that a contribution was made of may pin the run after a restart.
                     .dataset_fingerprint = account.data_counts ? account.dataset_fingerprint : std::string(),
                     .command = static_cast<uint8_t>(kept      ? told.command
                                                     : drained ? WorkerCommand::kDrain
                                                               : WorkerCommand(0)),
                     .command_at_once = kept && told.at_once};
}

WorkerEntry EntryOfRemoved(const MemberRegistry& members, WorkerEntry entry) {
  if (members.membership().Find(entry.name)->state == MemberState::kLeft) return entry;
  const bool drained =
      members.FindAccount(entry.name).drained || members.command(entry.name).command == WorkerCommand::kDrain;
  entry.departed = true;
  entry.command = static_cast<uint8_t>(drained ? WorkerCommand::kDrain : WorkerCommand(0));
  entry.command_at_once = false;
  return entry;
}

std::optional<WorkerEntry> TombstoneOf(const MemberRegistry& members, const WorkerName& name) {
  const Incarnation incarnation = members.membership().Find(name)->incarnation;
  if (Incarnation(incarnation.value() + 1) != members.membership().next_incarnation()) return std::nullopt;
  return WorkerEntry{.name = name,
                     .secret_hash = {},
                     .incarnation = incarnation,
                     .role = static_cast<uint8_t>(WorkerRole::kObserver),
                     .partition = std::nullopt,
                     .departed = true};
}

std::vector<WorkerName> WithCountedData(const MemberRegistry& members) {
  std::vector<WorkerName> names;
  for (const auto& [name, account] : members.accounts()) {
    if (account.data_counts && members.membership().Find(name) != nullptr) names.push_back(name);
  }
  return names;
}

std::vector<WorkerName> DrainedOf(const MemberRegistry& members) {
  std::vector<WorkerName> names;
  for (const auto& [name, account] : members.accounts()) {
    const bool has_drained = account.drained && !members.membership().IsLive(name);
    if (has_drained || members.command(name).command == WorkerCommand::kDrain) names.push_back(name);
  }
  return names;
}

bool CancelDrain(MemberRegistry& members, const WorkerName& name) {
  if (!members.accounts().contains(name)) return false;
  WorkerAccount& account = members.account(name);
  const bool told =
      members.command(name).command == WorkerCommand::kDrain && !members.membership().IsLive(name);
  if (told) members.SetCommand(name, PendingCommand{});
  return std::exchange(account.drained, false) || told;
}

}  // namespace atl
