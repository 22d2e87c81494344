#ifndef ATOLL_SERVER_RUN_EVALUATIONS_H_
#define ATOLL_SERVER_RUN_EVALUATIONS_H_

#include <optional>

#include "common/clock.h"
#include "server/run/run_core.h"

namespace atl {

/// Reports of evaluations: which count, and whether anybody is there to make them. Every function needs the
/// core's lock.
class Evaluations {
 public:
  /// `core` outlives it.
  explicit Evaluations(RunCore& core) : core_(core) {}

  /// Counts those of a heartbeat that are plausible and were asked for.
  void Take(const WorkerName& worker, const HeartbeatCall& call, MonoTime now, int64_t unix_ns,
            Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Announces, once for each time, that no evaluator has been there for a lease.
  void Watch(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Versions are to be evaluated by an evaluator, and none is there.
  bool Awaited() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// A live worker that was asked for the last version says that it evaluates, and tasks are part of that.
  bool TasksRun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Nobody is left that could still evaluate the last version.
  bool EvaluatorLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  void Count(const WorkerName& worker, EvaluationReport evaluation, MonoTime now, int64_t unix_ns,
             Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  /// Drops the scores that are none of this run's tasks, or no possible score.
  void DropBadScores(const WorkerName& worker, EvaluationReport& evaluation, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore& core_;
  std::optional<MonoTime> no_evaluator_since_ ABSL_GUARDED_BY(core_.mutex);
  MonoTime evaluator_missed_ ABSL_GUARDED_BY(core_.mutex){};  // that was announced
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_EVALUATIONS_H_
