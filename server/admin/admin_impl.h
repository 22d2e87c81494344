#ifndef ATOLL_SERVER_ADMIN_ADMIN_IMPL_H_
#define ATOLL_SERVER_ADMIN_ADMIN_IMPL_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/mutex.h"
#include "server/admin/admin_control.h"
#include "server/admin/checkpoint_keeper.h"
#include "server/coordinator_context.h"
#include "server/rounds/round_driver.h"
#include "server/run/config_history.h"

namespace atl {

/// As audit lines, configurations and pauses name who asked: "ann (127.0.0.1:50123)" when nobody was asked
/// for proof, "ann (certificate, 127.0.0.1:50123)", "ann (token, calls itself root, 127.0.0.1:50123)".
std::string CallerName(const AdminCaller& caller);

/// What operators do, put together: checks, records, tells the coordinator's state, announces. Actions
/// exclude each other, so that what was checked still holds when it is done; looking does not wait for them.
/// A launcher may take minutes to answer (Kubernetes, while its API is away): only actions on launched
/// workers wait for that. Thread-safe.
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
  absl::Status Verify(std::optional<Version> version, const VerifyReport& report) override;
  MetricsView GetMetrics() override;
  absl::StatusOr<RoundListView> ListRounds(FragmentId fragment, Version after, uint32_t limit) override;
  absl::Status ExportMetrics(const MetricSink& sink) override;
  void Audit(const AdminCaller& caller, std::string_view action, const std::string& what,
             const absl::Status& outcome, const std::string& done) override;

 private:
  // admin/run_actions.cc
  absl::StatusOr<std::string> Act(const AdminCaller& caller, RunAction action, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ChangeMode(RunMode mode, const AdminCaller& caller, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // admin/worker_actions.cc
  absl::StatusOr<std::string> Act(const ControlWorkerCall& call, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> SendCommand(const ControlWorkerCall& call, CommandView command,
                                          const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> ActAlone(const ControlWorkerCall& call, const std::string& why)
      ABSL_LOCKS_EXCLUDED(launching_mutex_, mutex_);
  absl::StatusOr<std::string> Restart(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(launching_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> RestartByItself(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(launching_mutex_, mutex_);
  absl::StatusOr<std::string> RestartFromOutside(const WorkerName& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(launching_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Whether the launcher must start the worker. False: it lives, and restarts when it is told to.
  absl::StatusOr<bool> MustBeStarted(const ControlWorkerCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(launching_mutex_, mutex_);
  absl::Status CheckPartitions(uint64_t wanted, std::string_view field) const;
  /// FailedPrecondition for a wanted worker of the launcher that was never a member.
  absl::Status CheckHasJoined(const WorkerName& name) const;
  absl::StatusOr<std::string> Drain(const ControlWorkerCall& call, const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RememberWorkers(uint32_t target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Records that drained workers are wanted again: they may not join before the coordinator's next start.
  void RecordCancelledDrains() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Of what the launcher does already: empty, or what to add to the answer when it could not be recorded.
  std::string NoteWorkers(uint32_t target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status KeepControl(const ControlEntry& control) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> Forget(const ControlWorkerCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> ForgetOlderThan(Duration age) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Records what the action makes of the worker, then does it: a refused action changed nothing.
  absl::Status RecordThen(MemberAction action, const WorkerName& worker,
                          const std::function<absl::Status(Effects&)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> SetBanned(const ControlWorkerCall& call, const std::string& why, bool banned)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ScaleResult> Scale(std::optional<uint32_t> add, std::optional<uint32_t> target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(launching_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Checks the request and records it: `result` then says from and to how many.
  absl::Status RecordScale(std::optional<uint32_t> add, std::optional<uint32_t> target, ScaleResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(launching_mutex_, mutex_);

  // admin/config_actions.cc
  absl::StatusOr<ConfigView> Change(const AdminCaller& caller, const std::vector<ConfigSetting>& settings,
                                    uint64_t expected_version, bool dry_run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ExtensionView> Extend(const AdminCaller& caller, uint32_t rounds, uint64_t expected_version,
                                       bool dry_run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Keep(const ConfigHistory::Proposal& proposal, const std::string& author)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckLease(const RunOptions& run) const;
  void PutInForce(const ConfigHistory::Proposal& proposal, const std::string& author)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CoordinatorContext& context_;
  CheckpointKeeper* const keeper_;
  RoundDriver* const driver_;
  Launcher* const launcher_;
  std::atomic<bool> verifying_{false};
  /// Held over what changes the workers that are launched, the launcher's work included, so that what is
  /// recorded of them and what the launcher was asked for come in the same call.
  Mutex launching_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  Mutex mutex_;  // held over the disk's work, never over the launcher's
  Mutex configs_mutex_;
  ConfigHistory configs_ ABSL_GUARDED_BY(configs_mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_ADMIN_IMPL_H_
