#ifndef ATOLL_SERVER_MEMBERS_MEMBER_REGISTRY_H_
#define ATOLL_SERVER_MEMBERS_MEMBER_REGISTRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "core/membership.h"
#include "core/run_options.h"
#include "server/coordinator.h"
#include "server/events/event_throttle.h"
#include "server/members/join_rate_limiter.h"
#include "server/members/run_model.h"
#include "server/rounds/work_assignments.h"
#include "server/run/run_configs.h"
#include "storage/run_store.h"

namespace atl {

/// What a worker is to be told, with every heartbeat until it was obeyed; kept over restarts of the
/// coordinator, all but a resync.
struct PendingCommand {
  WorkerCommand command = WorkerCommand::kNone;
  bool at_once = false;

  /// A resync is void with the next pull of the head, which every round brings: asked again after a restart
  /// it would cost its worker a second round.
  bool kept() const {
    return command == WorkerCommand::kDrain || command == WorkerCommand::kRestart ||
           command == WorkerCommand::kStop;
  }
  /// A worker that joins again has obeyed a restart and needs no resync. It has not left the run, so it is
  /// told to drain or to stop again.
  bool ends_with_a_new_life() const {
    return command == WorkerCommand::kRestart || command == WorkerCommand::kResync;
  }
};

/// What is kept of a worker while this coordinator lives.
struct WorkerAccount {
  /// What became of a worker's newest push to one fragment.
  struct LastPush {
    Version base;
    bool counted = false;
  };
  DeviceDescription device;
  ProgressReport progress;
  MonoTime last_seen_at;
  MonoTime joined_at{};       // with its current incarnation; unset: in an earlier life of the coordinator
  std::string manifest_hash;  // as it joined with; empty: not known (observers; after a restart)
  std::string dataset_fingerprint;  // of the shared data that it joined with; empty: none, or not known
  bool data_counts = false;         // a contribution made of this data counted: it may pin the run
  bool drained = false;             // it left because an operator drained it
  std::string public_key;           // of its confirmations; empty: it signs nothing
  std::map<FragmentId, LastPush> last_pushes;
  uint64_t accepted = 0;
  uint64_t rejected = 0;
  EventThrottle rejections;  // those that are announced
  uint64_t push_bytes = 0;
  uint64_t pull_bytes = 0;
};

/// The members and their accounts: who may call, and as what. Pure state, not thread-safe.
class MemberRegistry {
 public:
  /// `configs` outlives it. `max_ranks`: of one worker.
  MemberRegistry(const RunConfigs* configs, const RunIdentity& identity, uint32_t max_ranks = 1);

  /// Nothing when this call may join now; else RESOURCE_EXHAUSTED saying when to try again.
  absl::Status EnterJoin(const JoinCall& call, MonoTime now);

  /// Another configuration is in force: limits.max_workers, limits.joins_per_s and round.lease_s hold from
  /// here on; what else the registry reads is settled.
  void Configured();

  /// Returns names without a member that former versions stored for observers: to be deleted.
  std::vector<WorkerName> Restore(const std::vector<WorkerEntry>& workers,
                                  const std::vector<PartitionEntry>& partitions, MonoTime now);

  /// A restore: calls of the old epoch are refused from here on, and partitions are read from these
  /// positions.
  void BeginEpoch(Epoch epoch, const std::vector<PartitionEntry>& partitions);

  /// The checks of a Join that need no membership: name, secret, run, model, data.
  absl::Status CheckJoin(const JoinCall& call, const RunModel& model, MonoTime now);
  /// A returning member keeps a command that does not end with a new life (PendingCommand).
  absl::StatusOr<JoinOutcome> Join(const JoinCall& call, MonoTime now);

  /// Run and epoch: all that is asked of an observer.
  absl::Status CheckRun(const MemberRef& caller) const;
  /// CheckRun, then membership. PermissionDenied for an observer.
  absl::Status Check(const MemberRef& caller) const;
  /// Check, then a new lease. True when the worker was lost and is back.
  absl::StatusOr<bool> Renew(const MemberRef& caller, MonoTime now);

  /// What they were given to do.
  WorkAssignments& assignments() { return assignments_; }
  const WorkAssignments& assignments() const { return assignments_; }
  /// kNone for a member that was told nothing, or has obeyed.
  PendingCommand command(const WorkerName& name) const;
  /// The only way to change it. A member drains in membership() exactly while its command is to drain.
  void SetCommand(const WorkerName& name, const PendingCommand& command);
  Membership& membership() { return membership_; }
  const Membership& membership() const { return membership_; }
  /// Of a member.
  WorkerAccount& account(const WorkerName& name) { return accounts_[name]; }
  /// An empty one of a name that has none.
  const WorkerAccount& FindAccount(const WorkerName& name) const;
  const std::map<WorkerName, WorkerAccount>& accounts() const { return accounts_; }
  /// DATASET_MISMATCH when the run is pinned to other token files than this worker joined with.
  absl::Status CheckData(const WorkerName& name) const;
  /// A contribution of this worker counts: the first one pins the run to its token files. True when its
  /// record changed.
  bool NoteData(const WorkerName& name);
  /// The next contribution pins the run again. Names of the members whose records changed.
  std::vector<WorkerName> ForgetData();
  /// Drops all that is remembered of a departed worker. NotFound, FailedPrecondition (live, or banned: the
  /// ban would go with it).
  absl::Status Forget(const WorkerName& name);
  /// Departed workers that may be forgotten, gone for longer than `age`; at most `limit`.
  std::vector<WorkerName> Forgettable(Duration age, size_t limit, MonoTime now) const;
  /// Its name is refused at Join until it is not banned any more.
  void SetBanned(const WorkerName& name, bool banned);
  bool banned(const WorkerName& name) const { return banned_.contains(name); }

 private:
  absl::Status CheckModel(const JoinCall& call, const RunModel& model) const;
  absl::Status CheckDataset(const JoinCall& call) const;
  absl::Status CheckPin(const WorkerName& worker, const std::string& fingerprint) const;

  const RunConfigs* configs_;
  RunIdentity identity_;
  Membership membership_;
  JoinRateLimiter join_limiter_;
  JoinRateLimiter observers_join_limiter_;  // apart: observers never keep a worker out
  WorkAssignments assignments_;
  std::map<WorkerName, WorkerAccount> accounts_;
  std::map<WorkerName, PendingCommand> commands_;  // without kNone
  std::set<WorkerName> banned_;
  std::string fingerprint_;  // of the shared data: that of the first contribution; empty: nothing is pinned
  WorkerName pinned_by_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_MEMBER_REGISTRY_H_
