#ifndef ATOLL_SERVER_LAUNCH_LAUNCHER_H_
#define ATOLL_SERVER_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"

namespace atl {

/// One worker process as the launcher sees it.
struct LaunchedWorker {
  /// kDraining: it runs, and is not started again when it ends. kDrained: it ended so.
  enum class State : uint8_t { kStarting, kRunning, kStopping, kWaiting, kStopped, kDraining, kDrained };
  WorkerName name;
  State state = State::kStarting;
  std::string handle{};     // process id, or the pod's name
  uint32_t restarts = 0;    // lives after the first
  std::string last_exit{};  // how the last life ended; empty: it is the first
  Duration next_start{};    // kWaiting: from now
};

/// Whether it has a process or a running pod, wanted or not.
inline bool Runs(LaunchedWorker::State state) {
  using enum LaunchedWorker::State;
  return state == kRunning || state == kDraining || state == kStopping;
}

struct LauncherView {
  std::string kind;                      // process, kubernetes
  uint32_t target = 0;                   // wanted; drained ones do not count
  std::vector<WorkerName> wanted = {};   // those: as noted, whatever `workers` still shows
  std::vector<LaunchedWorker> workers;   // in order of number
  std::vector<WorkerName> drained = {};  // not wanted since an operator drained them
  std::string error;  // why the last attempt failed and when the next is; empty: nothing is wrong
};

/// Starts and stops worker processes somewhere, and starts again those that die, with backoff. Names are
/// numbered from 0. A worker is *wanted* (it is kept running), *drained* (an operator drained it: it is left
/// alone until Restart asks for it), or neither. Thread-safe; calls return when the request is noted, not
/// when it is fulfilled, except where the other side must be asked (Kubernetes' API server).
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// So many workers are wanted. More: the lowest numbers that are neither wanted nor drained. Fewer: those
  /// that are no members go first (SetMembers), then the highest numbers; they are asked to finish (SIGTERM:
  /// they push what they have) and given time for it. Wanted ones that ended with nothing more to do are
  /// started again.
  virtual absl::Status Scale(uint32_t target) = 0;
  /// The number that the run wants when the coordinator starts. Returns at once; what must be asked of others
  /// is asked until it is granted.
  virtual void Begin(uint32_t target) { Scale(target).IgnoreError(); }
  /// There is work again: wanted workers that ended because there was none are started, and so are those that
  /// are just about to end for this reason.
  virtual absl::Status StartAgain() { return Scale(view().target); }
  /// An operator drains this worker: it is not wanted any more, is left to end by itself, and is not started
  /// again until Restart asks for it. Answers what the operator should know besides; empty: nothing.
  virtual absl::StatusOr<std::string> Release(const WorkerName& name) { return std::string(); }
  /// Whether this worker was let go and is not wanted again yet.
  virtual bool IsReleased(const WorkerName& name) const { return false; }
  /// A worker that was let go is wanted again. Its process is left alone: it restarts by itself, or ends
  /// because it was draining, and is then started.
  virtual void Reclaim(const WorkerName& name) {}
  /// A worker that was let go has left the run.
  virtual void Left(const WorkerName& name) {}
  /// Who is a live member of the run. Called without a lock. Set before the first Scale.
  using IsMember = std::function<bool(const WorkerName&)>;
  virtual void SetMembers(IsMember is_member) {}  // NOLINT(performance-unnecessary-value-param): it is kept
  /// Ends the process of this worker (SIGTERM, later SIGKILL) and starts it again under its name: for a
  /// worker that does not answer its heartbeat's commands. One that was drained is wanted again. NotFound
  /// when it is none of the launcher's.
  virtual absl::Status Restart(const WorkerName& name) = 0;
  virtual LauncherView view() const = 0;
  /// Whether this worker is one that Scale made.
  virtual bool Owns(const WorkerName& name) const = 0;
  /// Ends all of them, waits for them. Idempotent. (Kubernetes: leaves them alone, the cluster owns them.)
  virtual void Shutdown() = 0;

  /// What happens to workers, for the event log.
  struct Event {
    bool launched = false;  // else: exited
    WorkerName name;
    std::string message;
  };
  using EventSink = std::function<void(const Event&)>;
  /// Called from the launcher's thread, never under its lock, and never again once Shutdown returned. Set
  /// before the first Scale; until it is, events go nowhere.
  virtual void SetEventSink(EventSink sink) {}  // NOLINT(performance-unnecessary-value-param): it is kept
  /// Where workers find the coordinator: known only once its port is open. Nothing is started before.
  virtual void SetCoordinator(const std::string& address) {}
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_LAUNCHER_H_
