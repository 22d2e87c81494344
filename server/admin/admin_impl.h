#ifndef ATOLL_SERVER_ADMIN_ADMIN_IMPL_H_
#define ATOLL_SERVER_ADMIN_ADMIN_IMPL_H_

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/admin/admin_control.h"
#include "server/admin/admin_locks.h"
#include "server/admin/checkpoint_keeper.h"
#include "server/admin/config_actions.h"
#include "server/admin/parameter_reader.h"
#include "server/admin/run_actions.h"
#include "server/admin/worker_actions.h"
#include "server/coordinator_context.h"
#include "server/rounds/round_driver.h"

namespace atl {

/// What operators do, put together: each action checks, records, tells the coordinator's state and announces.
/// Actions exclude each other (AdminLocks); looking does not wait for them. Thread-safe.
class AdminImpl final : public AdminControl {
 public:
  /// All outlive it. `launcher` may be null: nobody starts workers.
  struct Parts {
    const CoordinatorContext* context = nullptr;
    CheckpointKeeper* keeper = nullptr;
    RoundDriver* driver = nullptr;
    Launcher* launcher = nullptr;
    const ConfigCodec* config_codec = nullptr;  // null: the configuration cannot be changed
    std::vector<ConfigEntry> configs;           // recorded so far
  };
  explicit AdminImpl(Parts parts);

  absl::StatusOr<std::string> ControlRun(const AdminCaller& caller, RunAction action,
                                         const std::string& reason) override;
  absl::StatusOr<std::string> ControlWorker(const AdminCaller& caller,
                                            const ControlWorkerCall& call) override;
  absl::StatusOr<ConfigView> SetConfig(const AdminCaller& caller, const std::vector<ConfigSetting>& settings,
                                       uint64_t expected_version, bool dry_run) override;
  absl::StatusOr<std::vector<ConfigView>> ListConfigs() override;
  absl::StatusOr<ScaleResult> ScaleWorkers(const AdminCaller& caller, std::optional<uint32_t> add,
                                           std::optional<uint32_t> target) override;
  absl::StatusOr<ExtensionView> ExtendRun(const AdminCaller& caller, uint32_t rounds,
                                          uint64_t expected_version, bool dry_run) override;
  uint32_t WantedWorkers() const override;
  std::vector<WorkerName> DrainedWorkers() const override;
  LauncherView Launched() override;
  absl::StatusOr<CheckpointView> CreateCheckpoint(const AdminCaller& caller,
                                                  const std::string& name) override;
  absl::StatusOr<std::vector<CheckpointView>> ListCheckpoints(bool check) override;
  absl::StatusOr<RestoreResult> RestoreCheckpoint(const AdminCaller& caller,
                                                  const std::string& name) override;
  absl::Status DeleteCheckpoint(const AdminCaller& caller, const std::string& name) override;
  absl::Status ReadParameters(const ReadParametersCall& call, ParameterSink& sink) override {
    return reader_.Read(call, sink);
  }
  absl::Status Verify(std::optional<Version> version, const VerifyReport& report) override;
  MetricsView GetMetrics() override;
  absl::StatusOr<RoundListView> ListRounds(FragmentId fragment, Version after, uint32_t limit) override;
  absl::Status ExportMetrics(const MetricSink& sink) override;
  void Audit(const AdminCaller& caller, std::string_view action, const std::string& what,
             const absl::Status& outcome, const std::string& done) override;

 private:
  const CoordinatorContext& context_;
  CheckpointKeeper* const keeper_;
  Launcher* const launcher_;
  ParameterReader reader_;
  std::atomic<bool> verifying_{false};
  AdminLocks locks_;
  RunActions run_;
  ConfigActions configs_;
  WorkerActions workers_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_ADMIN_IMPL_H_
