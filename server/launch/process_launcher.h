#ifndef ATOLL_SERVER_LAUNCH_PROCESS_LAUNCHER_H_
#define ATOLL_SERVER_LAUNCH_PROCESS_LAUNCHER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "server/launch/launcher.h"
#include "server/launch/worker_slot.h"

namespace atl {

struct ProcessLauncherOptions {
  LaunchCommand command;
  std::string log_dir;  // created if missing, like the state root
  std::string name_prefix = "w";
  // Longer than a worker's --drain-seconds, so that it can leave cleanly.
  Duration grace = Seconds(30);
  // After this lifetime, a failure is not related to the start.
  Duration settled = Seconds(30);
  BackoffOptions backoff = {.initial = Seconds(1), .maximum = Seconds(60), .multiplier = 2};
  uint64_t seed = 0;  // of the jitter
};

/// Runs workers as processes on this host. One thread starts them, waits for them, and restarts failed ones:
/// after at most a second, then with growing delays up to a minute. A worker that exits with code 0 has no
/// more work (the run is finished) and stays stopped until Scale or Restart. A drained worker stays stopped
/// until Restart, however it ends. No worker outlives this process: Shutdown ends all of them, and after a
/// kill -9 of this process the kernel kills them (they resume from their state directories).
/// docs/reference/launchers.md
class ProcessLauncher final : public Launcher {
 public:
  /// InvalidArgument for an invalid prefix of worker names.
  static absl::StatusOr<std::unique_ptr<ProcessLauncher>> Create(ProcessLauncherOptions options,
                                                                 const Clock* clock);
  ~ProcessLauncher() override;

  absl::Status Scale(uint32_t target) override;
  absl::Status StartAgain() override;
  absl::StatusOr<std::string> Release(const WorkerName& name) override;
  bool IsReleased(const WorkerName& name) const override;
  void Reclaim(const WorkerName& name) override;
  void Lost(const WorkerName& name, bool restart) override;
  void SetMembers(IsMember is_member) override;
  absl::Status Restart(const WorkerName& name) override;
  LauncherView view() const override;
  bool Owns(const WorkerName& name) const override;
  void Shutdown() override;
  void SetEventSink(EventSink sink) override;
  void SetCoordinator(const std::string& address) override;

 private:
  struct Shown {
    LaunchedWorker worker;
    std::string trouble;
    std::optional<MonoTime> settles_at;
    std::string log;
  };
  struct Requests {
    std::set<uint32_t> wanted;
    std::set<uint32_t> drained;
    std::string coordinator;
    bool revive = false;
    bool start_again = false;
    std::set<uint32_t> restart;
    std::set<uint32_t> end;  // of those that drain
    bool shutting_down = false;
  };

  ProcessLauncher(ProcessLauncherOptions options, WorkerSlotOptions slot_options, FileDescriptor wake,
                  const Clock* clock);
  void Wake() const;
  void Loop();
  Requests TakeRequests();
  void Apply(const Requests& requests, MonoTime now);
  void Publish(MonoTime now);
  void Announce(const std::vector<Event>& events);
  void WaitForSomething(bool timed) const;
  std::set<uint32_t> Strangers() const;

  // Constant after construction.
  const ProcessLauncherOptions options_;
  const WorkerSlotOptions slot_options_;
  const FileDescriptor wake_;
  const Clock* const clock_;

  mutable Mutex mutex_;
  Requests requests_ ABSL_GUARDED_BY(mutex_);
  IsMember is_member_ ABSL_GUARDED_BY(mutex_);
  bool scaled_ ABSL_GUARDED_BY(mutex_) = false;  // at least once
  uint32_t made_ ABSL_GUARDED_BY(mutex_) = 0;    // above the highest number that was ever wanted
  EventSink sink_ ABSL_GUARDED_BY(mutex_);
  std::vector<Shown> shown_ ABSL_GUARDED_BY(mutex_);
  MonoTime shown_at_ ABSL_GUARDED_BY(mutex_){};

  // Of the thread alone.
  std::map<uint32_t, WorkerSlot> slots_;

  Mutex join_mutex_;  // makes a second Shutdown wait for the first
  std::thread thread_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_PROCESS_LAUNCHER_H_
