#ifndef ATOLL_CORE_MEMBERSHIP_H_
#define ATOLL_CORE_MEMBERSHIP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"

namespace atl {

/// trainer: contributes. evaluator: evaluates published versions. observer: only reads. Rounds wait only for
/// trainers.
enum class WorkerRole : uint8_t { kTrainer = 1, kEvaluator = 2, kObserver = 3 };

/// The incarnation number of observers. Observers are not members: they have no place, no name and no lease,
/// and nothing about them is stored. Members never get such a large number.
inline constexpr Incarnation kObserverIncarnation{0x7fffffffffffffff};

/// active: its lease runs. draining: the same, but it will leave. lost: its
/// lease expired. left: it left the run.
enum class MemberState : uint8_t { kActive = 1, kDraining = 2, kLost = 3, kLeft = 4 };

std::string_view WorkerRoleName(WorkerRole role);
std::string_view MemberStateName(MemberState state);

struct Member {
  WorkerName name = {};
  std::string secret_hash = {};  // SHA-256, hex, of the secret in its state directory
  WorkerRole role = WorkerRole::kTrainer;
  Incarnation incarnation = {};
  std::optional<uint32_t> partition = std::nullopt;  // of the shared data; trainers only
  MemberState state = MemberState::kActive;
  bool told_to_drain = false;  // kept while it is lost: it drains when it is back
  MonoTime joined_at = {};
  MonoTime lease_expires_at = {};

  bool live() const { return state == MemberState::kActive || state == MemberState::kDraining; }
};

/// The stored record of a member, which keeps its name and partition across restarts of the coordinator.
struct MemberRecord {
  WorkerName name = {};
  std::string secret_hash = {};
  WorkerRole role = WorkerRole::kTrainer;
  Incarnation incarnation = {};
  std::optional<uint32_t> partition = std::nullopt;
  MemberState state = MemberState::kActive;
  friend bool operator==(const MemberRecord&, const MemberRecord&) = default;
};

MemberRecord RecordOf(const Member& member);

struct MembershipOptions {
  Duration lease = Seconds(15);
  uint32_t max_workers = 1000;
  size_t max_names = 65536;  // ever seen: each is remembered, with its secret, as long as the run lives
  uint32_t partitions = 0;   // of the shared data; 0: data is local, nobody gets one
};

struct JoinOutcome {
  Incarnation incarnation = {};
  std::optional<uint32_t> partition = std::nullopt;
  bool returning = false;                                // the same worker (name and secret) was known before
  std::optional<Incarnation> superseded = std::nullopt;  // an earlier life of it that was still live
  std::optional<WorkerName>
      partition_from;  // the departed worker whose partition this was; its record changed too
};

/// OK when a name is [a-z0-9]([a-z0-9.-]*) of at most kMaxWorkerName bytes.
absl::Status ValidateWorkerName(std::string_view name);

struct MemberCounts {
  size_t live = 0;
  size_t lost = 0;
  size_t names = 0;               // departed ones included
  bool had_live_trainer = false;  // at any time since Restore
};

/// The members of the run. Pure state: time is an argument, and nothing is stored or sent here. Not
/// thread-safe. The cost of frequent operations (leases, lists of live members) depends on live or changing
/// members, not on the number of stored names.
class Membership {
 public:
  explicit Membership(const MembershipOptions& options);

  /// Restores the stored members; call it once, before anything else. Live members get a new lease from
  /// `now`, so that workers need not join again after a restart of the coordinator. Raises `next_incarnation`
  /// above every record's.
  void Restore(std::span<const MemberRecord> records, Incarnation next_incarnation, MonoTime now);

  /// Applies to later joins. Existing members stay.
  void set_max_workers(uint32_t max_workers) { options_.max_workers = max_workers; }
  /// Applies to later leases. Running leases keep their end.
  void set_lease(Duration lease) {
    options_.lease = lease;
    ++changes_;  // who is long gone
  }

  /// Admits a worker and gives it the next incarnation (strictly increasing over the run) and, when it is a
  /// trainer of shared data, a partition: its former one, else the lowest never used, else that of the
  /// longest departed worker. How far a partition was read is the partition's own (core/data_shares.h).
  ///   InvalidArgument    the name is not a valid one, or the secret hash is empty
  ///   AlreadyExists      a live worker with another secret has the name
  ///   ResourceExhausted  max_workers are live, max_names were seen, or all partitions are in use
  /// The same secret supersedes an earlier incarnation immediately. Another secret may take the name only
  /// after the lease expired or the owner left; it then gets the partition, but is not `returning`.
  absl::StatusOr<JoinOutcome> Join(std::string_view name, std::string_view secret_hash, WorkerRole role,
                                   MonoTime now);

  /// Checks that this incarnation may act: NotFound ("join again") for an unknown or departed worker or one
  /// that lost its place; FailedPrecondition ("superseded") for an earlier incarnation. A lost worker whose
  /// place is free may act.
  absl::Status CheckCurrent(std::string_view name, Incarnation incarnation) const;

  /// CheckCurrent, then a new lease; a lost worker is live again (ResourceExhausted when max_workers are).
  absl::Status Renew(std::string_view name, Incarnation incarnation, MonoTime now);

  /// Marks members whose lease ran out as lost; their names, in order.
  std::vector<WorkerName> Expire(MonoTime now);

  /// CheckCurrent, then the member is left.
  absl::Status Leave(std::string_view name, Incarnation incarnation, MonoTime now);
  /// Makes a live member draining, or active again. A lost one gets that state when it is back. A new
  /// incarnation is active until the next call. Does nothing for an unknown name.
  void SetDraining(std::string_view name, bool draining);
  /// Removes the member without its consent; its process may join again. NotFound for an unknown name.
  absl::Status Evict(std::string_view name, MonoTime now);

  /// Forgets a departed member: frees its name and its partition; the next worker of that name is a new
  /// worker. NotFound for an unknown name, FailedPrecondition if the member is live.
  absl::Status Forget(std::string_view name);
  /// At most `limit` departed members whose lease ended before `before`, longest departed first.
  std::vector<WorkerName> DepartedBefore(MonoTime before, size_t limit) const;

  /// Null for an unknown name. Pointers are valid until the next change.
  const Member* Find(std::string_view name) const;
  /// All, by name, departed ones included.
  std::vector<const Member*> All() const;
  /// Live members, by name.
  std::vector<const Member*> Live() const;
  /// Names, in order, of active (not draining) trainers.
  std::vector<WorkerName> ActiveTrainers() const;
  /// The same, including draining ones.
  std::vector<WorkerName> LiveTrainers() const;
  /// Partitions, ascending, that nobody ever had or whose owner has been gone for longer than one lease.
  std::vector<uint32_t> UnattendedPartitions(MonoTime now) const;
  /// From when on it has not been live for longer than one lease, if nothing changes; the end of time for a
  /// live one, the beginning of time for a name that was never seen.
  MonoTime LongGoneAt(std::string_view name) const;
  bool IsLive(std::string_view name) const;
  size_t live_count(WorkerRole role) const { return live_by_role_[static_cast<size_t>(role)]; }
  /// Active (not draining) trainers.
  size_t active_trainers() const { return active_trainers_; }
  /// Grows with every change of who is live, in which role and state, or of the length of leases; not with a
  /// lease that is renewed.
  uint64_t changes() const { return changes_; }
  /// All members, whatever their role.
  MemberCounts counts() const {
    return {
        .live = live_.size(), .lost = lost_, .names = members_.size(), .had_live_trainer = had_live_trainer_};
  }
  Incarnation next_incarnation() const { return next_incarnation_; }

 private:
  struct PartitionGrant {
    std::optional<uint32_t> partition = std::nullopt;
    std::optional<WorkerName> from = std::nullopt;
  };
  absl::StatusOr<PartitionGrant> GrantPartition(const Member* known, WorkerRole role) const;
  absl::Status CheckRoom(const Member* known) const;
  Member* FindMutable(std::string_view name);
  /// Around every change of a member but a new lease: takes it out of the indices below, and puts it back in.
  void Unindex(const Member& member);
  void Index(const Member& member);

  using ByEnd = std::set<std::pair<MonoTime, WorkerName>>;  // of the lease

  MembershipOptions options_;
  Incarnation next_incarnation_{1};
  std::map<WorkerName, Member, std::less<>> members_;
  // Indices of members_.
  std::map<WorkerName, const Member*, std::less<>> live_;
  ByEnd leases_;                           // of live members
  ByEnd departed_;                         // of the others: when they were lost or left
  std::map<uint32_t, WorkerName> owners_;  // of partitions; a partition has one owner
  std::set<uint32_t> without_live_owner_;  // partitions
  size_t lost_ = 0;
  std::array<size_t, 4> live_by_role_{};  // by the value of WorkerRole
  size_t active_trainers_ = 0;
  bool had_live_trainer_ = false;
  uint64_t changes_ = 0;
};

}  // namespace atl

#endif  // ATOLL_CORE_MEMBERSHIP_H_
