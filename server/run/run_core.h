#ifndef ATOLL_SERVER_RUN_RUN_CORE_H_
#define ATOLL_SERVER_RUN_RUN_CORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "core/privacy.h"
#include "server/members/evaluation_assignment.h"
#include "server/members/member_registry.h"
#include "server/members/offence_tracker.h"
#include "server/members/rejected_joins.h"
#include "server/members/run_model.h"
#include "server/rounds/fragment_round.h"
#include "server/run/config_snapshot.h"
#include "server/run/effects.h"
#include "server/run/run_configs.h"
#include "server/run/run_statistics.h"
#include "server/run/seed_grant.h"
#include "server/run/training_time.h"
#include "storage/run_store.h"

namespace atl {

struct CoordinatorStateOptions {
  ConfigPtr config;                             // the newest one recorded
  std::vector<ConfigPtr> earlier_configs = {};  // those that open rounds have, ascending
  RunIdentity identity;
  uint32_t fragments = 1;
  Duration heartbeat{};
  Duration final_evaluation_wait{};
  uint32_t max_ranks = 1;  // of one worker
};

/// What the parts of CoordinatorState share, and the lock over all of it. One lock, because a call reads and
/// changes several of these together: a push looks at its worker, its round and the run's configuration, and
/// must find them at the same moment. The parts hold it for microseconds and call nobody outside under it.
///
/// Every function here needs the lock.
struct RunCore {
  explicit RunCore(const CoordinatorStateOptions& with);

  /// The budget is spent, or the run was stopped, and no fragment gets a further version.
  bool Finished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// FailedPrecondition when the run is stopped or finished.
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// WRONG_FRAGMENT when the run has no such fragment.
  absl::Status CheckFragment(FragmentId fragment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// MANIFEST_MISMATCH when the worker joined with another model than that of the seeded run.
  absl::Status CheckModel(const WorkerName& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// "paused by ann: new disks"
  std::string ControlText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// What a run without parameters waits for.
  std::string SeedReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// Passes the seed grant on when its holder is gone.
  void RefreshGrant(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// A round on version 0 of each fragment.
  void OpenRounds(const std::vector<FragmentLayout>& layouts, MonoTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::vector<FragmentHead> FragmentHeadList() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  Version NewestHead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// Of a member: its record as it is to be stored.
  WorkerEntry Entry(const WorkerName& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// nullopt: the run promises no privacy.
  std::optional<PrivacyView> Privacy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const CoordinatorStateOptions options;

  mutable Mutex mutex;
  RunIdentity identity ABSL_GUARDED_BY(mutex);
  RunConfigs configs ABSL_GUARDED_BY(mutex);
  ControlEntry control ABSL_GUARDED_BY(mutex);
  MemberRegistry members ABSL_GUARDED_BY(mutex);
  RunStatistics statistics ABSL_GUARDED_BY(mutex);
  EvaluationAssignment evaluation_assignment ABSL_GUARDED_BY(mutex);
  OffenceTracker offences ABSL_GUARDED_BY(mutex);
  RejectedJoins rejected_joins ABSL_GUARDED_BY(mutex);
  PrivacyAccountant privacy ABSL_GUARDED_BY(mutex);
  TrainingTime training_time ABSL_GUARDED_BY(mutex);
  SeedGrant grant ABSL_GUARDED_BY(mutex);
  RunModel model ABSL_GUARDED_BY(mutex);
  std::vector<FragmentRound> fragments ABSL_GUARDED_BY(mutex);  // empty: not seeded
};

std::string_view RunModeName(RunMode mode);
/// ": why", or nothing.
std::string Because(const std::string& why);
/// NotFound.
absl::Status UnknownWorker(const WorkerName& worker);

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_CORE_H_
