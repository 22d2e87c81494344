#ifndef ATOLL_STORAGE_CONTRIBUTION_INDEX_H_
#define ATOLL_STORAGE_CONTRIBUTION_INDEX_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "storage/record.h"

namespace atl {

/// Which contributions a run has accepted, and which version's round counted each: the part of StoreIndex
/// that is about contributions. Pure: no I/O. Not thread-safe.
class ContributionIndex {
 public:
  /// What rounds counted and the run still keeps.
  struct Counted {
    Contribution contribution;
    Version version;  // the one that it went into
  };

  /// AlreadyExists: accepted. FailedPrecondition: accepted before, and left out of its round.
  absl::Status CheckFree(const ContributionKey& key) const;
  /// FailedPrecondition unless the contribution of this round is accepted, as named, and in no other round.
  absl::Status CheckCounted(const RoundRecord& record, const Contribution& contribution) const;

  /// Null when not accepted (or let go of since).
  const Contribution* Find(const ContributionKey& key) const;
  /// What a commit of this round lets go of: accepted before, and neither in it nor in any round before it.
  std::vector<ContributionKey> PassedOver(const RoundRecord& record) const;
  /// Accepted in this epoch and in no round yet, in key order.
  std::vector<Contribution> Pending(Epoch epoch, FragmentId fragment) const;
  /// Accepted and in no round yet, of every fragment.
  std::vector<ContributionKey> UncountedKeys() const;
  /// In key order.
  std::vector<Counted> CountedContributions() const;
  /// What serves nothing once `oldest` is the oldest version kept of a fragment.
  std::vector<ContributionKey> NotNeeded(FragmentId fragment, Version oldest, Epoch epoch) const;

  void Accept(const Contribution& contribution);
  /// The round was committed: what it has is counted, what it passed over is let go of.
  void Commit(const RoundRecord& record);
  /// While loading: this round was committed earlier.
  void Count(const RoundRecord& record);
  void Drop(const std::vector<ContributionKey>& keys);

 private:
  struct Accepted {
    Contribution contribution;
    std::optional<Version> used_by;  // the version whose round counted it
  };

  std::map<ContributionKey, Accepted> accepted_;
  // Left out of a round: their records went with its commit, their payloads go with the next stored version
  // (a checkpoint that is just being made may name them still). Until then the keys are not free.
  std::set<ContributionKey> passed_over_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_CONTRIBUTION_INDEX_H_
