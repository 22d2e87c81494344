#ifndef ATOLL_TESTS_FAKES_FAKE_ADMIN_H_
#define ATOLL_TESTS_FAKES_FAKE_ADMIN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "server/admin/admin_control.h"

namespace atl {

/// Remembers who asked for what, and answers as a test says. Thread-safe; hooks are set before the first
/// call.
class FakeAdmin final : public AdminControl {
 public:
  absl::StatusOr<std::string> ControlRun(const AdminCaller& caller, RunAction action,
                                         const std::string& reason) override {
    Note(caller, "run " + std::to_string(static_cast<int>(action)) + " " + reason);
    return answer;
  }
  absl::StatusOr<std::string> ControlWorker(const AdminCaller& caller,
                                            const ControlWorkerCall& call) override {
    Note(caller, "worker " + call.worker + " " + std::to_string(static_cast<int>(call.action)) +
                     (call.at_once ? " at once " : " ") + call.reason);
    return answer;
  }
  absl::StatusOr<ConfigView> SetConfig(const AdminCaller& caller, const std::vector<ConfigSetting>& settings,
                                       uint64_t expected_version, bool dry_run) override {
    std::string text = "set";
    for (const ConfigSetting& setting : settings) text += " " + setting.path + "=" + setting.value;
    Note(caller, text + " expecting " + std::to_string(expected_version) + (dry_run ? " dry" : ""));
    if (!answer.ok()) return answer.status();
    return configs.empty() ? ConfigView() : configs.back();
  }
  void Audit(const AdminCaller& caller, std::string_view action, const std::string& what,
             const absl::Status& outcome, const std::string& done) override {
    Note(caller,
         std::string(action) + ": " + what + ": " + (outcome.ok() ? done : std::string(outcome.message())));
  }
  absl::StatusOr<std::vector<ConfigView>> ListConfigs() override { return configs; }
  absl::StatusOr<ScaleResult> ScaleWorkers(const AdminCaller& caller, std::optional<uint32_t> add,
                                           std::optional<uint32_t> target) override {
    Note(caller, add      ? "add " + std::to_string(*add)
                 : target ? "scale to " + std::to_string(*target)
                          : std::string("scale to nothing"));
    if (!answer.ok()) return answer.status();
    return ScaleResult{.before = 2, .target = 4, .names = {"w-0", "w-1"}};
  }
  absl::StatusOr<ExtensionView> ExtendRun(const AdminCaller& caller, uint32_t rounds,
                                          uint64_t expected_version, bool dry_run) override {
    Note(caller, "extend by " + std::to_string(rounds) + " expecting " + std::to_string(expected_version) +
                     (dry_run ? " dry" : ""));
    if (!answer.ok()) return answer.status();
    return extension;
  }
  uint32_t WantedWorkers() const override { return launcher.target; }
  std::vector<WorkerName> DrainedWorkers() const override { return launcher.drained; }
  LauncherView Launched() override { return launcher; }
  absl::StatusOr<CheckpointView> CreateCheckpoint(const AdminCaller& caller,
                                                  const std::string& name) override {
    Note(caller, "checkpoint create " + name);
    if (!answer.ok()) return answer.status();
    return checkpoints.empty() ? CheckpointView() : checkpoints.front();
  }
  absl::StatusOr<std::vector<CheckpointView>> ListCheckpoints(bool check) override {
    Note({}, check ? "checkpoint list checked" : "checkpoint list");
    return checkpoints;
  }
  absl::StatusOr<RestoreResult> RestoreCheckpoint(const AdminCaller& caller,
                                                  const std::string& name) override {
    Note(caller, "checkpoint restore " + name);
    if (!answer.ok()) return answer.status();
    return RestoreResult{
        .epoch = Epoch(0xfedcba9876543210), .versions = {Version(9)}, .committed_tokens = 77};
  }
  absl::Status DeleteCheckpoint(const AdminCaller& caller, const std::string& name) override {
    Note(caller, "checkpoint delete " + name);
    return answer.status();
  }
  absl::Status ReadParameters(const ReadParametersCall& call, ParameterSink& sink) override {
    Note({}, "read " + (call.version ? "version " + std::to_string(call.version->value()) : call.checkpoint) +
                 (call.outer_state ? " with outer state" : ""));
    return on_read ? on_read(sink) : absl::OkStatus();
  }
  absl::Status Verify(std::optional<Version> version, const VerifyReport& report) override {
    Note({}, version ? "verify " + std::to_string(version->value()) : std::string("verify all"));
    return on_verify ? on_verify(report) : absl::OkStatus();
  }
  MetricsView GetMetrics() override { return metrics; }
  absl::StatusOr<RoundListView> ListRounds(FragmentId fragment, Version after, uint32_t limit) override {
    return on_rounds ? on_rounds(fragment, after, limit) : RoundListView();
  }
  absl::Status ExportMetrics(const MetricSink& sink) override {
    return on_export ? on_export(sink) : absl::OkStatus();
  }

  struct Asked {
    AdminCaller caller;
    std::string what;
  };
  std::vector<Asked> asked() const {
    MutexLock lock(&mutex_);
    return asked_;
  }

  absl::StatusOr<std::string> answer = std::string("as you say");
  std::vector<ConfigView> configs;
  LauncherView launcher;
  std::vector<CheckpointView> checkpoints;
  ExtensionView extension;
  MetricsView metrics;
  std::function<absl::Status(const VerifyReport&)> on_verify;
  std::function<absl::Status(const MetricSink&)> on_export;
  std::function<absl::Status(ParameterSink&)> on_read;
  std::function<absl::StatusOr<RoundListView>(FragmentId, Version, uint32_t)> on_rounds;

 private:
  void Note(const AdminCaller& caller, std::string what) {
    MutexLock lock(&mutex_);
    asked_.push_back({caller, std::move(what)});
  }

  mutable Mutex mutex_;
  std::vector<Asked> asked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_FAKE_ADMIN_H_
