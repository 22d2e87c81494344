#ifndef ATOLL_SERVER_FRAGMENT_ROUND_H_
#define ATOLL_SERVER_FRAGMENT_ROUND_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/fragment_plan.h"
#include "core/membership.h"
#include "core/round.h"
#include "core/round_policy.h"
#include "server/config_snapshot.h"
#include "storage/run_store.h"

namespace atoll {

/// One fragment between two versions: its open round, and what went into the last ones. Pure state, not
/// thread-safe.
///
/// Closing is atomic with respect to acceptance. BeginAccept is asked before a contribution becomes durable,
/// EndAccept after. BeginClose forbids further BeginAccept at once, but the set is fixed only when no
/// acceptance is in flight: so whatever became durable is part of the round, and nothing is refused after it
/// was made durable (a worker that is refused keeps its progress for the next push; if a crash then brought
/// the refused contribution back from disk, it would count twice).
class FragmentRound {
 public:
  FragmentRound(FragmentLayout layout, Epoch epoch, ConfigPtr config);

  const FragmentLayout& layout() const { return layout_; }
  Version head() const { return head_; }
  bool closing() const { return closing_; }
  /// No further version will be made.
  bool finished() const { return finished_; }

  /// In force from the next Open on.
  void Configure(ConfigPtr config) { next_config_ = std::move(config); }
  /// Of the open round, to its end.
  const ConfigSnapshot& config() const { return *config_; }
  const ConfigPtr& shared_config() const { return config_; }

  /// Opens the round on `head`.
  void Open(Version head, const Membership& membership, MonoTime now);
  void Finish() { finished_ = true; }
  /// Null while finished.
  Round* round() { return round_ && !finished_ ? &*round_ : nullptr; }
  const Round* round() const { return round_ && !finished_ ? &*round_ : nullptr; }

  /// What would become of this contribution: kAccepted (it may be uploaded), kDuplicate (it is here, or part
  /// of a committed version), or the refusal: STALE_BASE, UNKNOWN_BASE, ALREADY_PUSHED; Unavailable while one
  /// of this worker is being accepted.
  absl::StatusOr<Round::Arrival> Check(const Contribution& contribution) const;
  absl::Status BeginAccept(const Contribution& contribution);
  /// `durable`: it was accepted by the store, and counts.
  void EndAccept(const Contribution& contribution, bool durable, MonoTime now);

  /// From here on nothing new is accepted. The contributions in summation order, without the excluded ones,
  /// once no acceptance is in flight; nullopt until then (call again).
  std::optional<std::vector<Contribution>> BeginClose();
  /// The contributions of these workers cannot be merged.
  void Exclude(const WorkerName& worker) { excluded_.push_back(worker); }

  /// A contribution of this worker is becoming durable right now: what becomes of it is not known yet.
  bool Accepting(const WorkerName& worker) const { return accepting_.contains(worker); }

  /// The version was committed: remembers its contributions.
  void Committed(const RoundRecord& record);
  /// The contribution of this worker on this base, if it is part of a committed version that is remembered.
  const Contribution* FindCommitted(Version base, const WorkerName& worker) const;

  /// Trainers that were active when the base was published.
  uint32_t active_at_open() const { return active_at_open_; }
  /// The latest decision, for the status.
  RoundDecision decision;
  Version stored;

 private:
  struct PastRound {
    Version base;
    std::vector<Contribution> contributions;
  };
  absl::Status Stale(const ContributionKey& key) const;

  const FragmentLayout layout_;
  const Epoch epoch_;
  ConfigPtr config_;
  ConfigPtr next_config_;
  Version head_;
  std::optional<Round> round_;
  uint32_t active_at_open_ = 0;
  bool closing_ = false;
  bool finished_ = false;
  std::set<WorkerName> accepting_;
  std::vector<WorkerName> excluded_;
  std::deque<PastRound> past_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_FRAGMENT_ROUND_H_
