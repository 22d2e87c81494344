#ifndef ATOLL_SERVER_ROUNDS_ROUND_DRIVER_H_
#define ATOLL_SERVER_ROUNDS_ROUND_DRIVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/mutex.h"
#include "common/periodic_task.h"
#include "server/coordinator_context.h"
#include "server/publish/version_writer.h"
#include "server/rounds/fragment_round.h"
#include "server/rounds/fragment_state.h"
#include "server/rounds/merge_engine.h"

namespace atl {

/// Takes every fragment from version to version, on one thread: asks the policy, closes, merges, commits,
/// publishes, hands the tensors to the version writer. Nothing else writes parameters. What is closing, since
/// when and why is FragmentRound's to know; the driver keeps tensors only, and what it computed of them.
///
/// A commit that the disk refuses keeps the computed version and is tried again; nothing is computed twice
/// and nothing is lost.
class RoundDriver {
 public:
  /// `context` and `engine` outlive it; the engine is the driver's alone from now on.
  RoundDriver(const CoordinatorContext& context, MergeEngine* engine);
  ~RoundDriver();

  /// Publishes these fragments and drives them from now on: those recovered, or just seeded. `stored[i]`: the
  /// newest version of fragments[i] on disk. Again only within WhilePaused: they take the place of the
  /// others.
  void Adopt(std::vector<FragmentState> fragments, const std::vector<Version>& stored);

  /// Calls `work` between two steps, with no version being merged, committed or stored, and none that is
  /// waiting for it; what was computed and not committed is still there after it, unless `work` adopts other
  /// fragments. Unavailable, and `work` is not called, when the tensors of a version are not on disk within
  /// `timeout`.
  absl::Status WhilePaused(Duration timeout, const std::function<void()>& work);
  /// Calls `work` while no version is being made. It may wait for a merge to end.
  void BetweenSteps(const std::function<void()>& work);
  /// Called on the version writer's thread when the tensors of a version are on disk. Set once, before Adopt.
  void OnStored(std::function<void(FragmentId, Version)> stored) { on_stored_ = std::move(stored); }

  /// A round may be ready to close.
  void Wake() { task_.Wake(); }
  /// Finishes what it is doing, stores what is published, joins. Idempotent.
  void Stop();

 private:
  struct Pending {  // computed, not committed
    ComputedVersion computed;
    RoundRecord record;
    std::vector<PartitionEntry> partitions;
  };
  struct FragmentDriver {
    FragmentState state;
    bool halted = false;  // needs an operator
    MonoTime retry_at;    // nothing is tried before
    std::optional<Pending> pending;
    std::atomic<bool> storing{false};
  };

  void Step();
  void StepFragment(FragmentDriver& driver);
  void MergeFragment(FragmentDriver& driver, ClosedRound closed);
  bool Overflowed(FragmentDriver& driver, const std::vector<Contribution>& contributions,
                  const absl::Status& why);
  void Prepare(FragmentDriver& driver, ClosedRound closed, std::vector<float> weights,
               const MergeFindings& findings, ComputedVersion computed);
  void Commit(FragmentDriver& driver);
  void Published(FragmentDriver& driver, const Pending& pending);
  void Store(FragmentDriver& driver, const SnapshotPtr& published);
  void ReportStorage(const FragmentDriver& driver, const std::string& error);

  const CoordinatorContext& context_;
  MergeEngine* const engine_;
  std::function<void(FragmentId, Version)> on_stored_;
  VersionWriter version_writer_;
  Mutex stepping_;  // held over a step, and while nothing may happen
  Mutex mutex_;
  std::vector<std::unique_ptr<FragmentDriver>> adopted_
      ABSL_GUARDED_BY(mutex_);                            // not yet seen by the thread
  std::vector<std::unique_ptr<FragmentDriver>> drivers_;  // the thread's own
  PeriodicTask task_;                                     // last: its thread uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_ROUND_DRIVER_H_
