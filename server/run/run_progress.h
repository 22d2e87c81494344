#ifndef ATOLL_SERVER_RUN_RUN_PROGRESS_H_
#define ATOLL_SERVER_RUN_RUN_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "server/run/evaluations.h"
#include "server/run/run_core.h"

namespace atl {

/// How far the run is, when its fragments get no further version, and when the end is announced. Thread-safe.
class RunProgress {
 public:
  /// Both outlive it.
  RunProgress(RunCore& core, const Evaluations& evaluations) : core_(core), evaluations_(evaluations) {}

  bool finished() const;
  uint64_t CommittedTokens() const;
  /// Where the run is in the schedule.
  double Position() const;
  /// Where in the schedule the next round will begin; where the run is, when it is finished.
  double NextRoundPosition() const;
  /// Of a run that is stopped or whose budget is spent: fragments with nothing left to count have no further
  /// version. Returns them.
  std::vector<FragmentId> FinishEnded(MonoTime now);
  /// The budget was raised: fragments that were finished go on. Returns them.
  std::vector<FragmentId> ResumeFinished(MonoTime now, Effects& effects);

  // Under the lock.
  /// After a commit, or at the opening of the run. Returns the fragments that have no further version.
  std::vector<FragmentId> FinishCompleted(MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// When the run is finished, and its last version evaluated, or nobody is left to do it.
  void AnnounceEnd(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// After a restart: whether an earlier life announced it.
  void SetAnnounced(bool announced) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) { end_announced_ = announced; }
  /// There will be further versions.
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) {
    finished_at_.reset();
    end_announced_ = false;
  }
  bool end_announced() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) { return end_announced_; }
  /// Tasks may take far longer than the loss.
  static constexpr Duration kFinalTasksWait = Seconds(24 * 3600);
  /// Until when the end is not announced without an evaluation. Only of a finished run.
  MonoTime evaluation_due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  MonoTime finished_at() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex) { return *finished_at_; }

 private:
  std::vector<FragmentId> FinishEnding(MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  std::vector<FragmentId> FinishIdle(MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  bool BudgetSpent(const FragmentRound& fragment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore& core_;
  const Evaluations& evaluations_;
  std::optional<MonoTime> finished_at_ ABSL_GUARDED_BY(core_.mutex);
  bool end_announced_ ABSL_GUARDED_BY(core_.mutex) = false;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_PROGRESS_H_
