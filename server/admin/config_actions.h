#ifndef ATOLL_SERVER_ADMIN_CONFIG_ACTIONS_H_
#define ATOLL_SERVER_ADMIN_CONFIG_ACTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "server/admin/admin_control.h"
#include "server/admin/admin_locks.h"
#include "server/admin/metric_export.h"
#include "server/coordinator_context.h"
#include "server/rounds/round_driver.h"
#include "server/run/config_history.h"

namespace atl {

/// What an operator sets while the run goes on. Looking does not wait for an action. Thread-safe.
class ConfigActions {
 public:
  /// `launcher` may be null: nobody starts workers.
  struct Parts {
    RoundDriver* driver = nullptr;
    Launcher* launcher = nullptr;
  };
  /// `context`, `locks` and the parts outlive it.
  ConfigActions(const CoordinatorContext& context, AdminLocks* locks, const Parts& parts,
                ConfigHistory configs);

  /// AdminControl::SetConfig, ExtendRun and ListConfigs.
  absl::StatusOr<ConfigView> Set(const AdminCaller& caller, const std::vector<ConfigSetting>& settings,
                                 uint64_t expected_version, bool dry_run);
  absl::StatusOr<ExtensionView> ExtendRun(const AdminCaller& caller, uint32_t rounds,
                                          uint64_t expected_version, bool dry_run);
  absl::StatusOr<std::vector<ConfigView>> List();

  /// Every configuration of the run, read.
  RecordedRuns Runs();

 private:
  absl::StatusOr<ConfigView> Change(const AdminCaller& caller, const std::vector<ConfigSetting>& settings,
                                    uint64_t expected_version, bool dry_run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::StatusOr<ExtensionView> Extend(const AdminCaller& caller, uint32_t rounds, uint64_t expected_version,
                                       bool dry_run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::Status Keep(const ConfigHistory::Proposal& proposal, const std::string& author)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);
  absl::Status CheckLease(const RunOptions& run) const;
  void PutInForce(const ConfigHistory::Proposal& proposal, const std::string& author)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(locks_.state);

  const CoordinatorContext& context_;
  AdminLocks& locks_;
  RoundDriver* const driver_;
  Launcher* const launcher_;
  Mutex configs_mutex_;
  ConfigHistory configs_ ABSL_GUARDED_BY(configs_mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_CONFIG_ACTIONS_H_
