#ifndef ATOLL_SERVER_ROUNDS_FRAGMENT_ROUND_H_
#define ATOLL_SERVER_ROUNDS_FRAGMENT_ROUND_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/fragment_plan.h"
#include "core/grace_estimate.h"
#include "core/membership.h"
#include "core/protocol/push.h"
#include "core/round.h"
#include "core/round_policy.h"
#include "server/rounds/past_contributions.h"
#include "server/rounds/round_verdict.h"
#include "server/run/config_snapshot.h"
#include "server/run/run_configs.h"
#include "storage/run_store.h"

namespace atl {

/// A round whose contributions are fixed: what the next version is made of.
struct ClosedRound {
  ConfigPtr config;                         // that it was opened with
  std::string reason;                       // why it closed
  std::vector<Contribution> contributions;  // in summation order, without the excluded ones
};

/// One fragment between two versions: its open round, and what went into the last ones. Pure state, not
/// thread-safe.
///
/// A contribution on a base up to round.staleness_limit versions below the head becomes part of the open
/// round. While a round is being closed, one that would be late by no more than that in the next is asked to
/// wait a moment.
///
/// Closing is atomic with respect to acceptance. BeginAccept is asked before a contribution becomes durable,
/// EndAccept after. BeginClose forbids further BeginAccept at once, but the set is fixed only when no
/// acceptance is in flight: so whatever became durable is part of the round, and nothing is refused after it
/// was made durable (a worker that is refused keeps its progress for the next push; if a crash then brought
/// the refused contribution back from disk, it would count twice).
class FragmentRound {
 public:
  /// `configs` outlives it: each round is opened with the newest one.
  FragmentRound(FragmentLayout layout, Epoch epoch, const RunConfigs* configs);

  const FragmentLayout& layout() const { return *layout_; }
  /// Outlives the round, for uploads in progress during a restore.
  std::shared_ptr<const FragmentLayout> shared_layout() const { return layout_; }
  /// The newest committed version: the base of the round that is open, or was last. The run has no other
  /// record of it but the disk's; the driver's tensors and published snapshots say which version they are
  /// themselves.
  Version head() const { return round_ ? round_->base() : Version(); }
  /// The decision to close the open round, which holds until the next Open.
  struct Closing {
    std::string reason;
    MonoTime at;
  };
  /// Set from BeginClose to the next Open.
  const std::optional<Closing>& closing() const { return closing_; }
  /// No further version will be made.
  bool finished() const { return finished_; }

  /// Of the open round, to its end.
  const ConfigSnapshot& config() const { return *config_; }
  /// The codecs that pushes to the open round may have: its configuration's, that of the round before it, and
  /// those of the configurations recorded since. A worker encodes all fragments by one configuration, while
  /// the rounds of different fragments begin one after the other; one that joins in the middle of a round
  /// knows only the newest; and a contribution that comes late may count in the next round.
  std::set<CodecKind> push_codecs() const;

  /// Opens the round on `head`.
  void Open(Version head, const Membership& membership, MonoTime now);
  /// After a restart: with the configuration that it was opened with; the newest is that of the next round.
  void Reopen(Version head, ConfigPtr opened_with, const Membership& membership, MonoTime now);
  void Finish() {
    finished_ = true;
    ending = false;
  }
  /// It was finished; there will be further versions after all. What has arrived stays.
  void ResumeFinished(const Membership& membership, MonoTime now);
  /// Null while finished.
  Round* round() { return round_ && !finished_ ? &*round_ : nullptr; }
  const Round* round() const { return round_ && !finished_ ? &*round_ : nullptr; }

  /// What would become of this contribution: kAccepted (it may be uploaded), kDuplicate (it is here, or part
  /// of a committed version), or the refusal: STALE_BASE, UNKNOWN_BASE, ALREADY_PUSHED; Unavailable while
  /// the same one is being accepted.
  absl::StatusOr<Round::Arrival> Check(const Contribution& contribution) const;
  /// As Check; Unavailable also while the round is being closed and it may count in the next one.
  absl::Status BeginAccept(const Contribution& contribution);
  /// `durable`: it was accepted by the store, and counts. Also after a restart, without BeginAccept, for what
  /// was accepted before, whatever the limit says now.
  void EndAccept(const Contribution& contribution, bool durable, MonoTime now);
  /// What has become of this worker's contribution on this base; kUnknown while it may still come.
  PushStage StateOf(Version base, const WorkerName& worker) const;

  /// The verdict holds: from here on nothing new is accepted, and the round is closing until the next Open.
  /// The round, once no acceptance is in flight; nullopt until then (call again).
  std::optional<ClosedRound> BeginClose(MonoTime now);
  /// This contribution cannot be merged.
  void Exclude(const ContributionKey& key) { excluded_.insert(key); }

  /// Contributions that are becoming durable right now.
  size_t accepting() const { return accepting_.size(); }
  /// Nothing has arrived, or is about to, that a close would have to count.
  bool Idle() const { return !closing_ && accepting_.empty() && (!round_ || round_->arrived_count() == 0); }

  /// The version was committed: remembers its contributions.
  void Committed(const RoundRecord& record) { past_.Note(record, config_->run.round.staleness_limit); }
  const PastContributions& past() const { return past_; }

  /// What the policy goes by: the configuration's, with the grace that was learned. A minimum that was
  /// lowered since holds at once: the round that waits for it is the reason.
  RoundOptions rules() const;

  /// Trainers that were active when the base was published.
  uint32_t active_at_open() const { return active_at_open_; }
  /// Of the open round; for a closing round, the reason of the close.
  RoundVerdict verdict;
  GraceEstimate grace;
  Version stored;
  /// No further round is wanted, but the open one has contributions that were acknowledged: it closes with
  /// them, and the fragment is finished then.
  bool ending = false;
  /// Set by an operator: the open round closes for this reason, whatever the policy says.
  std::string close_now;

 private:
  using WorkerBase = std::pair<WorkerName, Version>;
  void OpenWith(ConfigPtr config, Version head, const Membership& membership, MonoTime now);
  /// This contribution is becoming durable right now: what becomes of it is not known yet.
  bool Accepting(const WorkerName& worker, Version base) const { return accepting_.contains({worker, base}); }
  /// Whether a contribution on this base may still become part of a version.
  bool Admissible(Version base) const;
  uint64_t Lateness(Version base) const;
  absl::Status Stale(const ContributionKey& key) const;
  std::string WhyStale(const ContributionKey& key) const;

  const std::shared_ptr<const FragmentLayout> layout_;
  const Epoch epoch_;
  const RunConfigs* configs_;
  ConfigPtr config_;                       // of the open round
  std::optional<CodecKind> codec_before_;  // of the round before it
  std::optional<Round> round_;
  uint32_t active_at_open_ = 0;
  std::optional<Closing> closing_;  // from BeginClose to the next Open
  bool finished_ = false;
  std::set<WorkerBase> accepting_;
  std::set<ContributionKey> excluded_;  // of the open round
  std::set<WorkerBase> left_out_;       // of rounds before
  PastContributions past_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_FRAGMENT_ROUND_H_
