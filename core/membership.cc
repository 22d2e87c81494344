#include "core/membership.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atoll {
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
  return member;
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
      std::string(name.substr(0, kMaxWorkerName + 1)), kMaxWorkerName));
}

Membership::Membership(const MembershipOptions& options) : options_(options) {}

void Membership::Restore(std::span<const MemberRecord> records, Incarnation next_incarnation, MonoTime now) {
  next_incarnation_ = std::max(next_incarnation_, next_incarnation);
  for (const MemberRecord& record : records) {
    Member member = FromRecord(record);
    member.joined_at = now;
    member.lease_expires_at = member.live() ? now + options_.lease : now;
    next_incarnation_ = std::max(next_incarnation_, Incarnation(record.incarnation.value() + 1));
    members_.insert_or_assign(record.name, std::move(member));
  }
}

absl::Status Membership::CheckRoom(const Member* known) const {
  if (known == nullptr && members_.size() >= options_.max_names) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the run has seen its maximum of %d names; join under one that has been here before",
                        options_.max_names));
  }
  const size_t others = live_count() - (known != nullptr && known->live() ? 1 : 0);
  if (others < options_.max_workers) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the run has its maximum of %d live workers; try again when one has left, or raise limits.max_workers",
      options_.max_workers));
}

absl::StatusOr<Membership::PartitionGrant> Membership::GrantPartition(const Member* known,
                                                                      WorkerRole role) const {
  if (role != WorkerRole::kTrainer || options_.partitions == 0) return PartitionGrant{};
  if (known != nullptr && known->partition) {
    return PartitionGrant{.partition = known->partition};
  }
  std::set<uint32_t> held;
  const Member* longest_gone = nullptr;
  for (const auto& [name, member] : members_) {
    if (!member.partition) continue;
    held.insert(*member.partition);
    if (member.live()) continue;
    // The end of the lease is when the worker was lost or left.
    if (longest_gone == nullptr || member.lease_expires_at < longest_gone->lease_expires_at)
      longest_gone = &member;
  }
  for (uint32_t partition = 0; partition < options_.partitions; ++partition) {
    if (!held.contains(partition)) return PartitionGrant{.partition = partition};
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
    return absl::InvalidArgumentError(
        absl::StrFormat("worker '%s' sent no secret to know it by", std::string(name)));
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
  if (grant.from) FindMutable(*grant.from)->partition.reset();
  next_incarnation_ = Incarnation(next_incarnation_.value() + 1);

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
    return JoinAgain(name, "was silent for so long that its part of the data was given to another");
  }
  return absl::OkStatus();
}

absl::Status Membership::Renew(std::string_view name, Incarnation incarnation, MonoTime now,
                               const WorkerProgress* progress) {
  ATOLL_RETURN_IF_ERROR(CheckCurrent(name, incarnation));
  Member& member = *FindMutable(name);
  if (member.state == MemberState::kLost) {
    ATOLL_RETURN_IF_ERROR(CheckRoom(&member));
    member.state = MemberState::kActive;
  }
  member.lease_expires_at = std::max(member.lease_expires_at, now + options_.lease);
  if (progress != nullptr) member.progress = *progress;
  return absl::OkStatus();
}

std::vector<WorkerName> Membership::Expire(MonoTime now) {
  std::vector<WorkerName> lost;
  for (auto& [name, member] : members_) {
    if (!member.live() || now < member.lease_expires_at) continue;
    member.state = MemberState::kLost;
    lost.push_back(name);
  }
  return lost;
}

std::optional<MonoTime> Membership::NextExpiry() const {
  std::optional<MonoTime> next;
  for (const auto& [name, member] : members_) {
    if (member.live() && (!next || member.lease_expires_at < *next)) next = member.lease_expires_at;
  }
  return next;
}

absl::Status Membership::Leave(std::string_view name, Incarnation incarnation, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(CheckCurrent(name, incarnation));
  Member& member = *FindMutable(name);
  member.state = MemberState::kLeft;
  member.lease_expires_at = now;
  return absl::OkStatus();
}

absl::Status Membership::Evict(std::string_view name, MonoTime now) {
  Member* member = FindMutable(name);
  if (member == nullptr) return JoinAgain(name, "is not known to this run");
  member->state = MemberState::kLeft;
  member->lease_expires_at = std::min(member->lease_expires_at, now);
  return absl::OkStatus();
}

absl::Status Membership::Drain(std::string_view name, Incarnation incarnation) {
  ATOLL_RETURN_IF_ERROR(CheckCurrent(name, incarnation));
  Member& member = *FindMutable(name);
  if (member.live()) member.state = MemberState::kDraining;
  return absl::OkStatus();
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

std::vector<WorkerName> Membership::ActiveTrainers() const {
  std::vector<WorkerName> names;
  for (const auto& [name, member] : members_) {
    if (member.role == WorkerRole::kTrainer && member.state == MemberState::kActive) names.push_back(name);
  }
  return names;
}

bool Membership::LongGone(std::string_view name, MonoTime now) const {
  const Member* member = Find(name);
  // The end of the lease is when the worker was lost or left.
  return member == nullptr || (!member->live() && now >= member->lease_expires_at + options_.lease);
}

std::vector<uint32_t> Membership::UnattendedPartitions(MonoTime now) const {
  std::vector<bool> attended(options_.partitions, false);
  for (const auto& [name, member] : members_) {
    if (member.partition && *member.partition < attended.size() && !LongGone(name, now)) {
      attended[*member.partition] = true;
    }
  }
  std::vector<uint32_t> unattended;
  for (uint32_t partition = 0; partition < options_.partitions; ++partition) {
    if (!attended[partition]) unattended.push_back(partition);
  }
  return unattended;
}

bool Membership::IsLive(std::string_view name) const {
  const Member* member = Find(name);
  return member != nullptr && member->live();
}

size_t Membership::live_count() const {
  return static_cast<size_t>(
      std::count_if(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.live(); }));
}

size_t Membership::live_count(WorkerRole role) const {
  return static_cast<size_t>(std::count_if(members_.begin(), members_.end(), [role](const auto& entry) {
    return entry.second.live() && entry.second.role == role;
  }));
}

}  // namespace atoll
