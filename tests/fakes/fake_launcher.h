#ifndef ATOLL_TESTS_FAKES_FAKE_LAUNCHER_H_
#define ATOLL_TESTS_FAKES_FAKE_LAUNCHER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/launch/launcher.h"
#include "server/launch/wanted_workers.h"

namespace atl {

/// Starts nothing, remembers what it was asked for. Its workers are w-0, w-1, ...; those that are not wanted
/// any more run on, as do the processes of a launcher whose thread has not got to them yet. Thread-safe.
class FakeLauncher final : public Launcher {
 public:
  /// What is left when the coordinator that owned it is gone.
  struct Log {
    Mutex mutex;
    std::vector<std::string> restarted ABSL_GUARDED_BY(mutex);
    std::set<uint32_t> wanted ABSL_GUARDED_BY(mutex);
    std::set<uint32_t> drained ABSL_GUARDED_BY(mutex);
    std::set<uint32_t> running ABSL_GUARDED_BY(mutex);
    std::vector<std::pair<WorkerName, bool>> lost ABSL_GUARDED_BY(mutex);  // and whether to restart it
    std::optional<Duration> age ABSL_GUARDED_BY(mutex);                    // of every process
    /// Scale and Restart wait for the other side while this is set, as a launcher does while a cluster is
    /// away.
    bool away ABSL_GUARDED_BY(mutex) = false;
    int started_again ABSL_GUARDED_BY(mutex) = 0;
    int asked ABSL_GUARDED_BY(mutex) = 0;  // calls of those two
    absl::Status answer ABSL_GUARDED_BY(mutex);
    CondVar changed;
  };
  explicit FakeLauncher(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  absl::Status Scale(uint32_t target) override {
    MutexLock lock(&log_->mutex);
    if (const absl::Status answer = Answer(); !answer.ok()) return answer;
    log_->wanted = ChooseNumbers(log_->wanted, log_->drained, {}, target);
    log_->running.insert(log_->wanted.begin(), log_->wanted.end());
    return absl::OkStatus();
  }
  absl::Status StartAgain() override {
    MutexLock lock(&log_->mutex);
    ++log_->started_again;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Release(const WorkerName& name) override {
    MutexLock lock(&log_->mutex);
    if (log_->wanted.erase(NumberOf(name)) == 0) return std::string();
    log_->drained.insert(NumberOf(name));
    return std::string("the launcher does not restart it");
  }
  bool IsReleased(const WorkerName& name) const override {
    MutexLock lock(&log_->mutex);
    return log_->drained.contains(NumberOf(name));
  }
  void Reclaim(const WorkerName& name) override {
    MutexLock lock(&log_->mutex);
    if (log_->drained.erase(NumberOf(name)) > 0) log_->wanted.insert(NumberOf(name));
  }
  void Lost(const WorkerName& name, bool restart) override {
    MutexLock lock(&log_->mutex);
    log_->lost.emplace_back(name, restart);
    log_->changed.NotifyAll();
  }
  absl::Status Restart(const WorkerName& name) override {
    {
      MutexLock lock(&log_->mutex);
      if (const absl::Status answer = Answer(); !answer.ok()) return answer;
    }
    Reclaim(name);
    MutexLock lock(&log_->mutex);
    log_->restarted.push_back(name);
    return absl::OkStatus();
  }
  LauncherView view() const override {
    MutexLock lock(&log_->mutex);
    LauncherView view;
    view.kind = "fake";
    view.target = static_cast<uint32_t>(log_->wanted.size());
    for (const uint32_t number : log_->wanted) view.wanted.push_back(NameOf(number));
    for (const uint32_t number : log_->drained) view.drained.push_back(NameOf(number));
    for (const uint32_t number : log_->running) {
      LaunchedWorker worker;
      worker.name = NameOf(number);
      worker.state = LaunchedWorker::State::kRunning;
      worker.age = log_->age;
      view.workers.push_back(worker);
    }
    return view;
  }
  bool Owns(const WorkerName& name) const override { return name.starts_with("w-"); }
  void Shutdown() override {}

 private:
  absl::Status Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(log_->mutex) {
    ++log_->asked;
    log_->changed.NotifyAll();
    while (log_->away) log_->changed.Wait(&log_->mutex);
    return log_->answer;
  }
  static WorkerName NameOf(uint32_t number) { return "w-" + std::to_string(number); }
  static uint32_t NumberOf(const WorkerName& name) {
    return name.starts_with("w-") ? static_cast<uint32_t>(std::stoul(name.substr(2))) : UINT32_MAX;
  }

  const std::shared_ptr<Log> log_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_FAKE_LAUNCHER_H_
