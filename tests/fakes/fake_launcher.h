#ifndef ATOLL_TESTS_FAKES_FAKE_LAUNCHER_H_
#define ATOLL_TESTS_FAKES_FAKE_LAUNCHER_H_

#include <memory>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "server/launch/launcher.h"

namespace atoll {

/// Starts nothing, remembers what it was asked for. Its workers are w-0, w-1, ... Thread-safe.
class FakeLauncher final : public Launcher {
 public:
  /// What is left when the coordinator that owned it is gone.
  struct Log {
    Mutex mutex;
    std::vector<std::string> restarted ABSL_GUARDED_BY(mutex);
    uint32_t target ABSL_GUARDED_BY(mutex) = 0;
  };
  explicit FakeLauncher(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  absl::Status Scale(uint32_t target) override {
    MutexLock lock(&log_->mutex);
    log_->target = target;
    return absl::OkStatus();
  }
  absl::Status Restart(const WorkerName& name) override {
    MutexLock lock(&log_->mutex);
    log_->restarted.push_back(name);
    return absl::OkStatus();
  }
  LauncherView view() const override {
    MutexLock lock(&log_->mutex);
    LauncherView view;
    view.kind = "fake";
    view.target = log_->target;
    for (uint32_t i = 0; i < log_->target; ++i) {
      LaunchedWorker worker;
      worker.name = "w-" + std::to_string(i);
      worker.state = LaunchedWorker::State::kRunning;
      view.workers.push_back(worker);
    }
    return view;
  }
  bool Owns(const WorkerName& name) const override { return name.starts_with("w-"); }
  void Shutdown() override {}

 private:
  const std::shared_ptr<Log> log_;
};

}  // namespace atoll

#endif  // ATOLL_TESTS_FAKES_FAKE_LAUNCHER_H_
