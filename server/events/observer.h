#ifndef ATOLL_SERVER_EVENTS_OBSERVER_H_
#define ATOLL_SERVER_EVENTS_OBSERVER_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "server/views.h"

namespace atl {

/// What the coordinator reports to metrics (monitoring implements it with prometheus-cpp). Called from
/// many threads at once, never under a lock of the coordinator; must not block. Every method does nothing
/// unless overridden.
class CoordinatorObserver {
 public:
  virtual ~CoordinatorObserver() = default;

  /// A version was published. Everything a histogram of rounds wants stands in the summary.
  virtual void OnRoundClosed(const RoundSummaryView& round) {}
  /// One contribution's end: "accepted", "duplicate", or the reason of its refusal in lower case
  /// ("stale_base", "not_finite", ...; "other" when it had none).
  virtual void OnContribution(std::string_view result) {}

  /// One upload that ended (well or not): payload bytes received by it and how long it took.
  virtual void OnPush(uint64_t bytes, double seconds) {}
  /// Bytes that left in one pull, as counted by CountPulledBytes.
  virtual void OnPullBytes(uint64_t bytes) {}

  /// What a round was made of: the L2 norm of each contribution, and whether the norm guard scaled those
  /// above the median.
  virtual void OnMergedNorms(std::span<const double> norms, bool guarded) {}
  /// Decode, merge, outer step, hashes of one round.
  virtual void OnMergeSeconds(double seconds) {}
  /// The synced record that makes a version exist; each successful attempt.
  virtual void OnCommitSeconds(double seconds) {}
  /// The tensors of one version written behind it; each successful attempt.
  virtual void OnStoreSeconds(double seconds) {}

  /// Called with every change, and with every tick.
  virtual void OnWorkers(uint32_t active_trainers, uint32_t active_others, uint32_t lost) {}
  virtual void OnRunState(RunState state) {}
  virtual void OnVersion(FragmentId fragment, Version published, Version stored) {}
  virtual void OnCommittedTokens(uint64_t committed, uint64_t total) {}
  virtual void OnStorageFailing(bool failing) {}

  virtual void OnEvaluation(const EvaluationView& evaluation) {}
  virtual void OnEvent(EventKind kind) {}
  /// Bytes of contributions on their way in, and how many there may be; with every tick.
  virtual void OnContributionBudget(uint64_t used, uint64_t limit) {}
  /// The newest checkpoint there is, Unix time; 0: none. At the start, and with every change.
  virtual void OnNewestCheckpoint(int64_t created_unix_ns) {}
  /// One confirmation of a published version by a worker: "valid", "diverged", "forged" or "unknown".
  virtual void OnConfirmation(std::string_view verdict) {}
  /// The newest recorded configuration; with every tick.
  virtual void OnConfigVersion(uint64_t version) {}
  /// A contribution to an earlier base was accepted into the open round.
  virtual void OnLateContribution() {}
  /// What was held against one contribution.
  virtual void OnOffence(Offence offence) {}
  /// A trainer's or evaluator's Join was refused: the reason in lower case ("name_taken", ...; without one
  /// the name of the status code, "resource_exhausted").
  virtual void OnJoinRejected(std::string_view reason) {}
  /// A worker was banned by the rule of `offenders`.
  virtual void OnBannedByRule() {}
  /// One action of an operator: "pause", "set_config", ...
  virtual void OnAdminAction(std::string_view action, bool done) {}
};

}  // namespace atl

#endif  // ATOLL_SERVER_EVENTS_OBSERVER_H_
