#ifndef ATOLL_SIMULATE_COORDINATOR_HOST_H_
#define ATOLL_SIMULATE_COORDINATOR_HOST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/thread.h"
#include "protos/config/run_config_codec.h"
#include "server/create_coordinator.h"
#include "simulate/run_checker.h"
#include "simulate/simulated_store.h"
#include "storage/memory_store.h"

namespace atl {

/// The machine that the coordinator runs on: starts it, kills it, cuts its power. One life after the other, each on
/// what the last one left on its disk. Used by fibers of one scheduler only.
class CoordinatorHost {
 public:
  /// Bytes of contributions on their way in, as the coordinator accounts for them.
  struct BudgetWatch final : CoordinatorObserver {
    void OnContributionBudget(uint64_t bytes, uint64_t) override { used = bytes; }
    uint64_t used = 0;
  };
  /// One process of the coordinator. A dead one goes on for a moment, on a disk that nobody reads any more, until
  /// its calls have returned; nothing that it does can be seen.
  struct Life {
    std::unique_ptr<Coordinator> coordinator;
    std::shared_ptr<SimulatedStoreState> store;
    bool dead = false;
    int calls = 0;  // under way
    MonoTime began = {};
    BudgetWatch budget;
  };
  using LifePtr = std::shared_ptr<Life>;

  CoordinatorHost(CoordinatorOptions options, const Clock* clock, RunChecker* checker, uint64_t seed);
  ~CoordinatorHost();

  /// Writes an empty run with the options' configuration.
  absl::Status CreateRun();
  absl::Status Start();
  /// As kill -9: what was written is there, whatever was being done.
  void Kill();
  /// As kill -9, and what was not synced is gone, from some point on.
  void CutPower();
  /// As SIGTERM.
  void Stop();

  /// Null while it is down.
  const LifePtr& life() const { return life_; }
  /// Waits for dead lives to end.
  void Reap();

 private:
  void Bury(bool power);

  CoordinatorOptions options_;
  const Clock* const clock_;
  RunChecker* const checker_;
  SplitMixGenerator random_;
  RunConfigCodec codec_;
  std::shared_ptr<MemoryDisk> disk_ = NewMemoryDisk();
  LifePtr life_;
  std::vector<Thread> reapers_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_COORDINATOR_HOST_H_
