#ifndef ATOLL_SERVER_RUN_MEMBER_ACTIONS_H_
#define ATOLL_SERVER_RUN_MEMBER_ACTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/members/member_records.h"
#include "server/run/run_core.h"
#include "server/run/run_progress.h"

namespace atl {

/// What operators and rules do to members: command, evict, ban, forget. Thread-safe.
class MemberActions {
 public:
  /// Both outlive it.
  MemberActions(RunCore& core, RunProgress& progress) : core_(core), progress_(progress) {}

  /// NotFound when the name was never seen.
  absl::StatusOr<WorkerView> Worker(const WorkerName& worker, MonoTime now) const;
  /// Tells a live worker this with its next heartbeats, until it obeyed; its record is to be stored with it.
  /// FailedPrecondition when it is not live.
  absl::Status SetCommand(const WorkerName& worker, const PendingCommand& command, Effects& effects);
  /// Removes the member at once; what it contributed stays. FailedPrecondition when it has left.
  absl::Status Evict(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects);
  /// FailedPrecondition when it is so already.
  absl::Status SetBanned(const WorkerName& worker, bool banned, const std::string& why, MonoTime now,
                         Effects& effects);
  /// Forgets one departed worker. NotFound, FailedPrecondition (it is live, or banned).
  absl::Status Forget(const WorkerName& worker, Effects& effects);
  /// The next contribution pins the token files of the run again.
  void ResetDataset(Effects& effects);

  // The records of members as they will be after an action, which are stored before it.
  /// Fails as the action itself would.
  absl::StatusOr<MemberRecords> RecordsAfter(MemberAction action, const WorkerName& worker) const;
  /// After departed workers that have been gone for longer are forgotten.
  absl::StatusOr<MemberRecords> RecordsAfterForgetting(Duration age, MonoTime now) const;
  /// After ResetDataset.
  MemberRecords RecordsWithoutDataset() const;

  // For the launcher.
  /// See MemberRegistry.
  std::vector<WorkerName> Drained() const;
  /// Those of Drained() that are wanted again are drained no more, whether they join or not.
  void CancelDrains(const std::vector<WorkerName>& wanted, Effects& effects);
  /// Live trainers other than those that `except` names: each has a part of shared data.
  uint32_t LiveTrainersExcept(const std::function<bool(const WorkerName&)>& except) const;

  // Under the lock.
  void BanByRule(const std::vector<OffenceTracker::Ban>& bans, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// After a restart: names without a member, whose records ForgetOld deletes.
  void ForgetStrays(std::vector<WorkerName> names) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// After a restart: what is held against whom. BanDue bans those that the rule had found.
  void RestoreOffences(const Recovery& recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  void BanDue(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// The run goes on from other contents.
  void BeginEpoch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Forgets those that have been gone for longer than limits.forget_workers_after_h.
  void ForgetOld(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  /// NotFound; FailedPrecondition when the action makes no sense now.
  absl::Status CheckAction(MemberAction action, const WorkerName& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Of a worker that may be forgotten.
  void AddForgotten(const WorkerName& worker, MemberRecords& records) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  void Remove(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  void Ban(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Its record is deleted, or the newest incarnation alone is kept of it: after a restart none may be issued
  /// twice.
  absl::Status ForgetOne(const WorkerName& name, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore& core_;
  RunProgress& progress_;
  std::vector<WorkerName> stray_names_ ABSL_GUARDED_BY(core_.mutex);
  std::vector<OffenceTracker::Ban> due_bans_ ABSL_GUARDED_BY(core_.mutex);  // found at a restart
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_MEMBER_ACTIONS_H_
