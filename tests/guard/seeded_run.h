#ifndef ATOLL_TESTS_GUARD_SEEDED_RUN_H_
#define ATOLL_TESTS_GUARD_SEEDED_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/random.h"
#include "core/fragment_plan.h"
#include "protos/config/run_config_codec.h"
#include "server/create_coordinator.h"
#include "storage/memory_store.h"
#include "tests/common/fake_clock.h"
#include "tests/fakes/faulty_store.h"
#include "tests/guard/direct_connection.h"
#include "tests/guard/turnstile.h"
#include "tests/guard/worker_life.h"

namespace atl {

/// Counts how often the round driver's thread looks at it.
class StepCountingClock final : public FakeClock {
 public:
  MonoTime Now() const override;
  uint64_t steps() const { return steps_; }

 private:
  mutable std::atomic<uint64_t> steps_{0};
};

/// What a seeded run leaves behind, as hashes.
struct RunTrace {
  std::string versions;     // of every version: theta, optimizer state and published values, as recorded
  std::string rounds;       // of every round: contributions with their payloads' checksums, weights, counts
  std::string tensors;      // theta and state of the heads, as stored
  std::string residuals;    // error feedback of every worker and fragment
  std::string state_files;  // every byte of the workers' state directories
  uint64_t heads = 0;       // sum of the head versions
  std::map<std::string, int> faults;  // by kind, how many took place

  /// One line of seeded_runs.txt, without its name.
  std::string Line() const;
};

/// A real coordinator over the reference store and four workers with the real synchronisation loops, one
/// thread at a time in an order that the seed decides, with faults that the seed decides: lost and repeated
/// calls, lost answers, killed and restarted workers, killed and restarted coordinators, expired leases,
/// drains, changed configurations. Equal seeds give equal traces.
class SeededRun {
 public:
  /// `yaml` is the run's configuration; state directories go below `folder`.
  SeededRun(const std::string& yaml, uint64_t seed, const std::string& folder);
  ~SeededRun();

  /// Runs until the run is finished and every worker has ended. An error names what went wrong: it takes too
  /// many turns, or a worker ended with an error.
  absl::Status Run();
  /// After Run. An error also when a contribution counted twice.
  absl::StatusOr<RunTrace> Trace();

 private:
  struct Trails;
  struct Seat {
    std::unique_ptr<WorkerLife> life;
    int away = 0;       // turns until it is started again
    bool left = false;  // it has left for good
  };

  absl::Status BeginRun();
  absl::Status OpenCoordinator();
  void CloseCoordinator(bool crash);
  void Settle();
  bool Quiet();
  bool Seeded();
  bool Finished();
  uint64_t Heads();
  void MaybeFault();
  void KillWorker();
  void ExpireLease();
  void Drain();
  void ChangeCodec();
  absl::Status Advance();
  bool AllLeft() const;
  WorkerLife* AnyTraining();
  static absl::Status HashFragment(RunStore& store, const FragmentLayout& layout, Version head,
                                   Trails& trails);
  absl::Status HashWorkers(const std::vector<FragmentLayout>& layouts, Trails& trails);

  const std::string folder_;
  SplitMixGenerator random_;
  StepCountingClock clock_;
  RunConfigCodec codec_;
  CoordinatorOptions options_;
  std::shared_ptr<MemoryDisk> checkpoint_ = NewMemoryDisk();
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::unique_ptr<Coordinator> coordinator_;
  Turnstile turnstile_;
  CoordinatorLink link_;
  std::map<WorkerName, Seat> seats_;
  int coordinator_away_ = 0;  // turns until it is opened again
  int crash_in_ = 0;          // turns until it is killed; 0: it is not to be
  absl::Status defect_;       // found while a call settled
  std::map<std::string, int> happened_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_GUARD_SEEDED_RUN_H_
