#include "core/membership.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

absl::Status JoinAgain(std::string_view name, std::string_view why) {
  return absl::NotFoundError(
      absl::StrFormat("worker '%s' %s; join again", std::string(name), std::string(why)));
}

Member FromRecord(const MemberRecord& record) {
  Member member;
  member.name = record.name;
  member.secret_hash = record.secret_hash;
  member.role = record.role;
  member.incarnation = record.incarnation;
  member.partition = record.partition;
  member.state = record.state;
  member.told_to_drain = record.state == MemberState::kDraining;
  return member;
}

bool IsActiveTrainer(const Member& member) {
  return member.role == WorkerRole::kTrainer && member.state == MemberState::kActive;
}

}  // namespace

std::string_view WorkerRoleName(WorkerRole role) {
  switch (role) {
    case WorkerRole::kTrainer:
      return "trainer";
    case WorkerRole::kEvaluator:
      return "evaluator";
    case WorkerRole::kObserver:
      return "observer";
  }
  return "unknown";
}

std::string_view MemberStateName(MemberState state) {
  switch (state) {
    case MemberState::kActive:
      return "active";
    case MemberState::kDraining:
      return "draining";
    case MemberState::kLost:
      return "lost";
    case MemberState::kLeft:
      return "left";
  }
  return "unknown";
}

MemberRecord RecordOf(const Member& member) {
  return {.name = member.name,
          .secret_hash = member.secret_hash,
          .role = member.role,
          .incarnation = member.incarnation,
          .partition = member.partition,
          .state = member.state};
}

absl::Status ValidateWorkerName(std::string_view name) {
  const auto letter_or_digit = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool valid = !name.empty() && name.size() <= kMaxWorkerName && letter_or_digit(name.front()) &&
                     std::all_of(name.begin(), name.end(),
                                 [&](char c) { return letter_or_digit(c) || c == '.' || c == '-'; });
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "worker name '%s' is not valid: 1 to %d of a-z, 0-9, '.', '-', beginning with a letter or digit",
      absl::CHexEscape(std::string(name.substr(0, kMaxWorkerName + 1))), kMaxWorkerName));
}

Membership::Membership(const MembershipOptions& options) : options_(options) {
  for (uint32_t partition = 0; partition < options_.partitions; ++partition) {
    without_live_owner_.insert(without_live_owner_.end(), partition);
  }
}

void Membership::Restore(std::span<const MemberRecord> records, Incarnation next_incarnation, MonoTime now) {
  next_incarnation_ = std::max(next_incarnation_, next_incarnation);
  for (const MemberRecord& record : records) {
    Member member = FromRecord(record);
    member.joined_at = now;
    member.lease_expires_at = member.live() ? now + options_.lease : now;
    next_incarnation_ = std::max(next_incarnation_, Incarnation(record.incarnation.value() + 1));
    if (const Member* known = Find(record.name); known != nullptr) Unindex(*known);
    Index(members_.insert_or_assign(record.name, std::move(member)).first->second);
  }
}

absl::Status Membership::CheckRoom(const Member* known) const {
  if (known == nullptr && members_.size() >= options_.max_names) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the run has reached its maximum of %d names; join under an existing name", options_.max_names));
  }
  const size_t others = live_.size() - (known != nullptr && known->live() ? 1 : 0);
  if (others < options_.max_workers) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the run has its maximum of %d live workers; retry when a worker has left, or raise limits.max_workers",
      options_.max_workers));
}

absl::StatusOr<Membership::PartitionGrant> Membership::GrantPartition(const Member* known,
                                                                      WorkerRole role) const {
  if (role != WorkerRole::kTrainer || options_.partitions == 0) return PartitionGrant{};
  if (known != nullptr && known->partition) {
    return PartitionGrant{.partition = known->partition};
  }
  for (uint32_t partition = 0; partition < options_.partitions; ++partition) {
    if (!owners_.contains(partition)) return PartitionGrant{.partition = partition};
  }
  const Member* longest_gone = nullptr;
  for (const auto& [partition, name] : owners_) {
    const Member& owner = *Find(name);
    if (owner.live()) continue;
    // The end of the lease is when the worker was lost or left.
    if (longest_gone == nullptr || owner.lease_expires_at < longest_gone->lease_expires_at)
      longest_gone = &owner;
  }
  if (longest_gone != nullptr) {
    return PartitionGrant{.partition = longest_gone->partition, .from = longest_gone->name};
  }
  return absl::ResourceExhaustedError(
      absl::StrFormat("all %d parts of the shared data are in use by live workers; try again when one has "
                      "left, or start a run with more "
                      "data.partitions",
                      options_.partitions));
}

absl::StatusOr<JoinOutcome> Membership::Join(std::string_view name, std::string_view secret_hash,
                                             WorkerRole role, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(name));
  if (secret_hash.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "worker '%s' sent no secret, which identifies it when it returns", std::string(name)));
  }
  Member* known = FindMutable(name);
  const bool same_owner = known != nullptr && known->secret_hash == secret_hash;
  const bool holds_name = known != nullptr && known->live() && now < known->lease_expires_at;
  if (holds_name && !same_owner) {
    return absl::AlreadyExistsError(absl::StrFormat(
        "the name '%s' belongs to another live worker (incarnation %d); choose another name, start with that "
        "worker's "
        "state directory if this is the same worker, or wait %.1f s in case it is gone",
        std::string(name), known->incarnation.value(), ToSeconds(known->lease_expires_at - now)));
  }
  ATOLL_RETURN_IF_ERROR(CheckRoom(known));
  ATOLL_ASSIGN_OR_RETURN(const PartitionGrant grant, GrantPartition(known, role));

  JoinOutcome outcome{.incarnation = next_incarnation_,
                      .partition = grant.partition,
                      .returning = same_owner,
                      .partition_from = grant.from};
  if (known != nullptr && known->live()) outcome.superseded = known->incarnation;
  if (grant.from) {
    Member& from = *FindMutable(*grant.from);
    Unindex(from);
    from.partition.reset();
    Index(from);
  }
  next_incarnation_ = Incarnation(next_incarnation_.value() + 1);

  if (known != nullptr) Unindex(*known);
  Member& member = members_[WorkerName(name)];
  // One that joins in another role keeps its part of the data reserved, for when it trains again.
  const std::optional<uint32_t> partition = grant.partition ? grant.partition : member.partition;
  member = Member{};
  member.name = WorkerName(name);
  member.secret_hash = std::string(secret_hash);
  member.role = role;
  member.incarnation = outcome.incarnation;
  member.partition = partition;
  member.joined_at = now;
  member.lease_expires_at = now + options_.lease;
  Index(member);
  return outcome;
}

absl::Status Membership::CheckCurrent(std::string_view name, Incarnation incarnation) const {
  const Member* member = Find(name);
  if (member == nullptr) return JoinAgain(name, "is not known to this run");
  if (incarnation < member->incarnation) {
    return absl::FailedPreconditionError(
        absl::StrFormat("worker '%s' incarnation %d is superseded by incarnation %d; this process must exit",
                        std::string(name), incarnation.value(), member->incarnation.value()));
  }
  if (incarnation > member->incarnation) return JoinAgain(name, "names an incarnation that was never issued");
  if (member->state == MemberState::kLeft) return JoinAgain(name, "has left the run");
  const bool needs_partition = member->role == WorkerRole::kTrainer && options_.partitions > 0;
  if (needs_partition && !member->partition) {
    return JoinAgain(name, "was silent for so long that another worker got its part of the data");
  }
  return absl::OkStatus();
}

absl::Status Membership::Renew(std::string_view name, Incarnation incarnation, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(CheckCurrent(name, incarnation));
  Member& member = *FindMutable(name);
  if (member.state == MemberState::kLost) {
    ATOLL_RETURN_IF_ERROR(CheckRoom(&member));
  }
  const MonoTime expires_at = std::max(member.lease_expires_at, now + options_.lease);
  if (member.live()) {
    leases_.erase({member.lease_expires_at, member.name});
    member.lease_expires_at = expires_at;
    leases_.emplace(expires_at, member.name);
    return absl::OkStatus();
  }
  Unindex(member);
  member.state = member.told_to_drain ? MemberState::kDraining : MemberState::kActive;
  member.lease_expires_at = expires_at;
  Index(member);
  return absl::OkStatus();
}

std::vector<WorkerName> Membership::Expire(MonoTime now) {
  std::vector<WorkerName> lost;
  while (!leases_.empty() && leases_.begin()->first <= now) {
    const WorkerName name = leases_.begin()->second;
    Member& member = *FindMutable(name);
    Unindex(member);
    member.state = MemberState::kLost;
    Index(member);
    lost.push_back(name);
  }
  std::ranges::sort(lost);
  return lost;
}

absl::Status Membership::Leave(std::string_view name, Incarnation incarnation, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(CheckCurrent(name, incarnation));
  Member& member = *FindMutable(name);
  Unindex(member);
  member.state = MemberState::kLeft;
  member.lease_expires_at = now;
  Index(member);
  return absl::OkStatus();
}

absl::Status Membership::Evict(std::string_view name, MonoTime now) {
  Member* member = FindMutable(name);
  if (member == nullptr) return JoinAgain(name, "is not known to this run");
  Unindex(*member);
  member->state = MemberState::kLeft;
  member->lease_expires_at = std::min(member->lease_expires_at, now);
  Index(*member);
  return absl::OkStatus();
}

void Membership::SetDraining(std::string_view name, bool draining) {
  Member* member = FindMutable(name);
  if (member == nullptr || member->told_to_drain == draining) return;
  member->told_to_drain = draining;
  if (!member->live()) return;
  Unindex(*member);
  member->state = draining ? MemberState::kDraining : MemberState::kActive;
  Index(*member);
}

absl::Status Membership::Forget(std::string_view name) {
  const auto found = members_.find(name);
  if (found == members_.end()) return JoinAgain(name, "is not known to this run");
  if (found->second.live()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("worker '%s' is live; drain or evict it first", std::string(name)));
  }
  Unindex(found->second);
  members_.erase(found);
  return absl::OkStatus();
}

std::vector<WorkerName> Membership::DepartedBefore(MonoTime before, size_t limit) const {
  std::vector<WorkerName> names;
  for (const auto& [end, name] : departed_) {
    if (end >= before || names.size() >= limit) break;
    names.push_back(name);
  }
  return names;
}

void Membership::Unindex(const Member& member) {
  ++changes_;
  if (member.live()) {
    live_.erase(member.name);
    --live_by_role_[static_cast<size_t>(member.role)];
    if (IsActiveTrainer(member)) --active_trainers_;
    leases_.erase({member.lease_expires_at, member.name});
  } else {
    departed_.erase({member.lease_expires_at, member.name});
  }
  if (member.state == MemberState::kLost) --lost_;
  if (!member.partition) return;
  const auto owner = owners_.find(*member.partition);
  if (owner == owners_.end() || owner->second != member.name) return;
  owners_.erase(owner);
  if (*member.partition < options_.partitions) without_live_owner_.insert(*member.partition);
}

void Membership::Index(const Member& member) {
  ++changes_;
  if (member.live()) {
    live_.emplace(member.name, &member);
    ++live_by_role_[static_cast<size_t>(member.role)];
    had_live_trainer_ |= member.role == WorkerRole::kTrainer;
    if (IsActiveTrainer(member)) ++active_trainers_;
    leases_.emplace(member.lease_expires_at, member.name);
  } else {
    departed_.emplace(member.lease_expires_at, member.name);
  }
  if (member.state == MemberState::kLost) ++lost_;
  if (!member.partition) return;
  owners_.insert_or_assign(*member.partition, member.name);
  if (member.live()) {
    without_live_owner_.erase(*member.partition);
  } else if (*member.partition < options_.partitions) {
    without_live_owner_.insert(*member.partition);
  }
}

Member* Membership::FindMutable(std::string_view name) {
  const auto it = members_.find(name);
  return it == members_.end() ? nullptr : &it->second;
}

const Member* Membership::Find(std::string_view name) const {
  const auto it = members_.find(name);
  return it == members_.end() ? nullptr : &it->second;
}

std::vector<const Member*> Membership::All() const {
  std::vector<const Member*> all;
  all.reserve(members_.size());
  for (const auto& [name, member] : members_) all.push_back(&member);
  return all;
}

std::vector<const Member*> Membership::Live() const {
  std::vector<const Member*> live;
  live.reserve(live_.size());
  for (const auto& [name, member] : live_) live.push_back(member);
  return live;
}

std::vector<WorkerName> Membership::ActiveTrainers() const {
  std::vector<WorkerName> names;
  for (const auto& [name, member] : live_) {
    if (IsActiveTrainer(*member)) names.push_back(name);
  }
  return names;
}

std::vector<WorkerName> Membership::LiveTrainers() const {
  std::vector<WorkerName> names;
  for (const auto& [name, member] : live_) {
    if (member->role == WorkerRole::kTrainer) names.push_back(name);
  }
  return names;
}

MonoTime Membership::LongGoneAt(std::string_view name) const {
  const Member* member = Find(name);
  if (member == nullptr) return MonoTime::min();
  // The end of the lease is when the worker was lost or left.
  return member->live() ? MonoTime::max() : member->lease_expires_at + options_.lease;
}

std::vector<uint32_t> Membership::UnattendedPartitions(MonoTime now) const {
  std::vector<uint32_t> unattended;
  for (const uint32_t partition : without_live_owner_) {
    const auto owner = owners_.find(partition);
    if (owner == owners_.end() || LongGoneAt(owner->second) <= now) unattended.push_back(partition);
  }
  return unattended;
}

bool Membership::IsLive(std::string_view name) const {
  const Member* member = Find(name);
  return member != nullptr && member->live();
}

}  // namespace atl
