#ifndef ATOLL_SERVER_LAUNCH_LAUNCHER_H_
#define ATOLL_SERVER_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"

namespace atl {

/// One worker process as the launcher sees it.
struct LaunchedWorker {
  /// kDraining: it runs and is not restarted when it ends. kDrained: it has ended in that way. kAbsent: it
  /// runs and was a member of the run, and is none now: it was removed, or does not answer.
  enum class State : uint8_t {
    kStarting,
    kRunning,
    kStopping,
    kWaiting,
    kStopped,
    kDraining,
    kDrained,
    kAbsent
  };
  WorkerName name;
  State state = State::kStarting;
  std::string handle{};                        // process id, or the pod's name
  uint32_t restarts = 0;                       // lives after the first
  std::string last_exit{};                     // how the last life ended; empty: it is the first
  Duration next_start{};                       // kWaiting: from now
  std::optional<Duration> age = std::nullopt;  // of the process; nullopt: there is none, or it is not known
};

/// Whether it has a process or a running pod, wanted or not.
inline bool Runs(LaunchedWorker::State state) {
  using enum LaunchedWorker::State;
  return state == kRunning || state == kDraining || state == kStopping || state == kAbsent;
}

struct LauncherView {
  std::string kind;                      // process, kubernetes
  uint32_t target = 0;                   // wanted; drained ones do not count
  std::vector<WorkerName> wanted = {};   // those: as noted, whatever `workers` still shows
  std::vector<LaunchedWorker> workers;   // in order of number
  std::vector<WorkerName> drained = {};  // not wanted since an operator drained them
  std::string error;  // why the last attempt failed and when the next is; empty: nothing is wrong
};

/// Starts and stops worker processes, and restarts failed ones with backoff. Names are numbered from 0. A
/// worker is *wanted* (kept running), *drained* (an operator drained it, so it stays stopped until Restart),
/// or neither. Thread-safe. Calls return when the request is recorded, not when it is done, except for calls
/// to Kubernetes' API server.
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Sets the number of wanted workers. To add workers, starts the lowest numbers that are neither wanted nor
  /// drained. To remove workers, stops those that are not members first (SetMembers), then the highest
  /// numbers; they get SIGTERM and time to push their steps. Also restarts wanted workers that ended because
  /// their work was done.
  virtual absl::Status Scale(uint32_t target) = 0;
  /// The number of workers that the run wants when the coordinator starts. Returns immediately; requests to
  /// others are repeated until they are granted.
  virtual void Begin(uint32_t target) { Scale(target).IgnoreError(); }
  /// There is work again: starts wanted workers that ended because there was none, including those that are
  /// about to end for this reason.
  virtual absl::Status StartAgain() { return Scale(view().target); }
  /// An operator drains this worker: it is no longer wanted, ends by itself, and is not restarted until
  /// Restart. Returns additional information for the operator; may be empty.
  virtual absl::StatusOr<std::string> Release(const WorkerName& name) { return std::string(); }
  /// Whether this worker was drained and is not wanted again yet.
  virtual bool IsReleased(const WorkerName& name) const { return false; }
  /// A drained worker is wanted again. Does not touch its process: it restarts by itself, or ends because it
  /// was draining and is then started.
  virtual void Reclaim(const WorkerName& name) {}
  /// A drained worker has left the run.
  virtual void Left(const WorkerName& name) {}
  /// The lease of this worker ended before it obeyed a command to drain or, with `restart`, to restart: its
  /// process does not answer. Ends the process (SIGTERM, later SIGKILL), and starts it again if `restart`.
  /// Ignores workers of another origin. Does not block.
  virtual void Lost(const WorkerName& name, bool restart) {}
  /// Whether a worker is a live member of the run. Called without a lock. Set it before the first Scale.
  using IsMember = std::function<bool(const WorkerName&)>;
  virtual void SetMembers(IsMember is_member) {}  // NOLINT(performance-unnecessary-value-param): it is kept
  /// Ends the process of this worker (SIGTERM, later SIGKILL) and restarts it under its name, for a worker
  /// that does not obey commands. A drained worker is wanted again. NotFound for a worker of another origin.
  virtual absl::Status Restart(const WorkerName& name) = 0;
  virtual LauncherView view() const = 0;
  /// Whether Scale created this worker.
  virtual bool Owns(const WorkerName& name) const = 0;
  /// Ends all workers and waits for them. Idempotent. (Kubernetes: does not touch them; the cluster owns
  /// them.)
  virtual void Shutdown() = 0;

  /// What happens to workers, for the event log.
  struct Event {
    bool launched = false;  // else: exited
    WorkerName name;
    std::string message;
  };
  using EventSink = std::function<void(const Event&)>;
  /// Called from the launcher's thread, never under its lock, and never after Shutdown returned. Set it
  /// before the first Scale; until then, events are discarded.
  virtual void SetEventSink(EventSink sink) {}  // NOLINT(performance-unnecessary-value-param): it is kept
  /// The address of the coordinator for workers, known when its port is open. No worker starts before.
  virtual void SetCoordinator(const std::string& address) {}
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_LAUNCHER_H_
