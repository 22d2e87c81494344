#ifndef ATOLL_SIMULATE_WORKER_HOST_H_
#define ATOLL_SIMULATE_WORKER_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/random.h"
#include "common/thread.h"
#include "simulate/coordinator_host.h"
#include "simulate/run_checker.h"
#include "simulate/simulated_network.h"

namespace atl {

/// The machine that one worker runs on: the real worker (client/sync/worker.h) over a simulated link, with a simulated
/// model and its state in memory_files.h. One life after the other. Fibers of one scheduler only.
class WorkerHost {
 public:
  /// `folder` is its own; lives are numbered below it. The pointers outlive this.
  WorkerHost(const WorkerName& name, const std::string& folder, CoordinatorHost* host, const Clock* clock,
             RunChecker* checker, uint64_t seed);
  ~WorkerHost();

  void Start();
  /// As kill -9.
  void Kill();
  /// The same, and some of what was not synced is lost.
  void CutPower(SplitMixGenerator& random);
  /// As SIGTERM: finish the push, leave.
  void Drain();

  const WorkerName& name() const { return name_; }
  bool running() const { return life_ != nullptr; }
  /// When it was last seen running; now, while it is.
  MonoTime last_seen() const { return running() ? SteadyNow() : last_seen_; }
  /// Has the process ended by itself? Then it is cleared away, and `how` says how.
  bool TakeEnd(absl::Status* how);
  /// Waits for killed lives to end.
  void Reap();

  SimulatedLink link;
  Duration step_time = Seconds(1);  // of an inner step
  bool frozen = false;              // as SIGSTOP: no step ends

 private:
  struct Life;
  void End(const std::function<bool()>& is_lost);

  const WorkerName name_;
  const std::string folder_;
  CoordinatorHost* const host_;
  const Clock* const clock_;
  RunChecker* const checker_;
  const uint64_t seed_;
  uint64_t lives_ = 0;
  std::shared_ptr<Life> life_;
  MonoTime last_seen_ = {};
  std::vector<Thread> reapers_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_WORKER_HOST_H_
