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

namespace atoll {

/// One worker process as the launcher sees it.
struct LaunchedWorker {
  enum class State : uint8_t { kStarting, kRunning, kStopping, kWaiting, kStopped };
  WorkerName name;
  State state = State::kStarting;
  std::string handle{};     // process id, or the pod's name
  uint32_t restarts = 0;    // lives after the first
  std::string last_exit{};  // how the last life ended; empty: it is the first
  Duration next_start{};    // kWaiting: from now
};

struct LauncherView {
  std::string kind;  // process, kubernetes
  uint32_t target = 0;
  std::vector<LaunchedWorker> workers;  // in order of number
  std::string error;  // why the last attempt failed and when the next is; empty: nothing is wrong
};

/// Starts and stops worker processes somewhere, and starts again those that die, with backoff. Names are
/// numbered from 0; scaling down stops the highest numbers. Thread-safe; calls return when the wish is noted,
/// not when it is fulfilled, except where the other side must be asked (Kubernetes' API server).
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// So many workers in all. Those above are asked to finish (SIGTERM: they push what they have) and given
  /// time for it.
  virtual absl::Status Scale(uint32_t target) = 0;
  /// Ends the process of this worker (SIGTERM, later SIGKILL) and starts it again under its name: for a
  /// worker that does not answer its heartbeat's commands. NotFound when it is none of the launcher's.
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

}  // namespace atoll

#endif  // ATOLL_SERVER_LAUNCH_LAUNCHER_H_
