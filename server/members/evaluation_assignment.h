#ifndef ATOLL_SERVER_MEMBERS_EVALUATION_ASSIGNMENT_H_
#define ATOLL_SERVER_MEMBERS_EVALUATION_ASSIGNMENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "common/clock.h"
#include "common/ids.h"
#include "core/membership.h"
#include "core/run_options.h"
#include "server/events/event_throttle.h"

namespace atl {

/// What a reported evaluation is worth.
enum class EvaluationWorth : uint8_t {
  kTaken,    // the first one of its version, of a worker that was asked for it
  kKnown,    // the version has its evaluation, so that this one changes nothing: often the same, sent again
  kUnasked,  // nobody asked this worker for this version
};

/// When a run evaluates (EvaluationSection of run.proto).
struct EvaluationPolicy {
  EvaluatedBy by = EvaluatedBy::kWorker;
  uint32_t every = 1;        // versions
  uint32_t tasks_every = 0;  // evaluations; 0: the run has no tasks
};
EvaluationPolicy EvaluationPolicyOf(const RunOptions& run);

/// Which published versions are evaluated, and by whom: version 0, every `every`-th, and the last one. With
/// EvaluatedBy::kWorker one live trainer has the assignment for a version, the first in the order of
/// partitions, and keeps it while it lives; with kEvaluator every evaluator that pulls the version has it.
/// Best effort: no round waits for a report. An evaluation counts once for a version, and only from a worker
/// that was asked for it. Pure state, not thread-safe.
class EvaluationAssignment {
 public:
  /// Versions that a worker was asked for and may still report; it evaluates one after the other. Also the
  /// due versions that may be reported after a restart by those that an earlier life may have asked.
  static constexpr size_t kKept = 16;
  /// Unasked reports at once that are worth an event, and the time after which another one is.
  static constexpr double kEventBurst = 10;
  static constexpr Duration kEventInterval = Seconds(60);

  explicit EvaluationAssignment(const EvaluationPolicy& policy) : policy_(policy) {}
  /// For assignments that nobody has yet.
  void Configure(const EvaluationPolicy& policy) { policy_ = policy; }

  /// After a restart, when every known report was told. It is not on record who was asked, and an evaluation
  /// may be under way: each of `workers`, the members before that could have been asked, may report the
  /// newest due versions that lack one. `last`: no version follows `head`.
  void Inherit(Version head, bool last, const std::set<WorkerName>& workers);

  /// False: Assign asks no worker of this role for the version.
  bool Wanted(WorkerRole role, Version version, bool last) const {
    const WorkerRole asked =
        policy_.by == EvaluatedBy::kEvaluator ? WorkerRole::kEvaluator : WorkerRole::kTrainer;
    return role == asked && Due(version, last) && !HasReport(version);
  }
  /// Whether the evaluation of this version includes the tasks: the first, every `tasks_every`-th, the last.
  bool TasksDue(Version version, bool last) const;
  /// `live`: the live trainers, in order of partitions. `last`: no version will follow. True asks this
  /// worker.
  bool Assign(const WorkerName& worker, WorkerRole role, Version version, bool last,
              std::span<const WorkerName> live);
  /// A report for this version came.
  void Reported(Version version) { reported_.insert(version); }
  bool HasReport(Version version) const { return reported_.contains(version); }
  EvaluationWorth Weigh(const WorkerName& worker, Version version) const;
  /// A report is ignored. True when it is worth an event.
  bool NoteIgnored(MonoTime now);
  /// Reports that were ignored.
  uint64_t ignored() const { return ignored_; }
  /// Nothing is expected of this worker any more.
  void Forget(const WorkerName& worker) { asked_.erase(worker); }
  /// Who has the assignment; empty: nobody yet.
  WorkerName Holder(Version version) const;

 private:
  bool Due(Version version, bool last) const;
  void Ask(const WorkerName& worker, Version version);

  EvaluationPolicy policy_;
  std::set<Version> reported_;
  std::map<Version, WorkerName> holders_;
  std::map<WorkerName, std::set<Version>> asked_;
  uint64_t ignored_ = 0;
  EventThrottle events_{kEventBurst, kEventInterval};
};

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_EVALUATION_ASSIGNMENT_H_
