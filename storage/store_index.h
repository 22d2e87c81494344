#ifndef ATOLL_STORAGE_STORE_INDEX_H_
#define ATOLL_STORAGE_STORE_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "storage/record.h"
#include "storage/run_store.h"

namespace atl {

/// What a store must remember to judge the next call: heads, stored versions, accepted contributions. Both
/// stores ask it before they write (Check...) and tell it once the write is durable (Applied...), so that
/// they refuse the same things in the same words. Pure: no I/O. Not thread-safe.
class StoreIndex {
 public:
  /// What storing `stored.versions.back()` lets go of.
  struct Retention {
    StoredEntry stored;
    std::vector<Version> dropped_versions;
    std::vector<ContributionKey> dropped_contributions;
  };

  /// AlreadyExists when there is a run. InvalidArgument naming the field.
  absl::Status CheckCreate(const RunIdentity& identity, const ConfigEntry& config) const;
  /// FailedPrecondition when there is no run, InvalidArgument unless it is the next version.
  absl::Status CheckConfig(const ConfigEntry& config) const;
  absl::Status CheckCreated() const;
  /// AlreadyExists when seeded; InvalidArgument when layouts and tensors do not fit each other.
  absl::Status CheckSeed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                         const std::vector<FragmentTensorsView>& tensors) const;
  /// FailedPrecondition: not seeded, other epoch, base above the head. NotFound:
  /// no such fragment. AlreadyExists: accepted already. InvalidArgument: a name or size that cannot be.
  absl::Status CheckUpload(const ContributionKey& key, uint64_t payload_bytes) const;
  /// As CheckUpload; InvalidArgument when the contribution does not describe this upload.
  absl::Status CheckAccept(const ContributionKey& key, uint64_t payload_bytes,
                           const Contribution& contribution) const;
  /// FailedPrecondition unless record.version == head + 1 and each contribution is accepted, as named, and
  /// in no other round.
  absl::Status CheckCommit(const RoundRecord& record) const;
  /// FailedPrecondition unless stored < version <= head, or version == stored (which repeats the retention).
  absl::Status CheckStore(const FragmentLayout& layout, Version version, const FragmentTensorsView& tensors,
                          uint32_t keep) const;
  /// NotFound naming the versions that there are.
  absl::Status CheckRead(const FragmentLayout& layout, Version version) const;

  /// NotFound, FailedPrecondition.
  absl::StatusOr<StoredEntry> CheckStored(FragmentId fragment) const;
  /// InvalidArgument unless every fragment gets version head + 1 of its shape in a new epoch.
  absl::Status CheckEpoch(const EpochStart& start) const;

  /// What BeginEpoch writes, and which contributions it lets go of: those that no round took.
  struct EpochPlan {
    RunIdentity identity;
    std::vector<HeadEntry> heads;
    std::vector<StoredEntry> stored;
    std::vector<ContributionKey> dropped_contributions;
  };
  /// Requires that CheckEpoch said OK.
  EpochPlan PlanEpoch(const EpochStart& start) const;
  /// What a commit of this round lets go of: accepted before, and neither in it nor in any round before it.
  std::vector<ContributionKey> PassedOver(const RoundRecord& record) const;
  /// Requires that CheckStore said OK.
  Retention PlanRetention(FragmentId fragment, Version version, uint32_t keep) const;

  void AppliedCreate(const RunIdentity& identity) { identity_ = identity; }
  void AppliedConfig(const ConfigEntry& config) { last_config_ = config.version; }
  void AppliedFragment(const HeadEntry& head, const StoredEntry& stored);
  void AppliedAccept(const Contribution& contribution);
  void AppliedCommit(const RoundRecord& record);
  void AppliedRetention(const Retention& retention);
  void AppliedEpoch(const EpochPlan& plan);
  /// While loading: this round was committed earlier.
  void AppliedHistory(const RoundRecord& record);

  const std::optional<RunIdentity>& identity() const { return identity_; }
  /// The newest.
  uint64_t config_version() const { return last_config_; }
  bool seeded() const { return !fragments_.empty(); }
  uint32_t fragment_count() const { return static_cast<uint32_t>(fragments_.size()); }
  Version head(FragmentId fragment) const { return fragments_[fragment.value()].head; }
  const StoredEntry& stored(FragmentId fragment) const { return fragments_[fragment.value()].stored; }
  /// Null when not accepted (or let go of since).
  const Contribution* accepted(const ContributionKey& key) const;
  /// Accepted in this epoch and in no round yet, in key order.
  std::vector<Contribution> Pending(FragmentId fragment) const;
  /// Accepted and in no round yet, of every fragment.
  std::vector<ContributionKey> UncountedKeys() const;
  /// What rounds counted and the run still keeps, in key order.
  struct Counted {
    Contribution contribution;
    Version version;  // the one that it went into
  };
  std::vector<Counted> CountedContributions() const;

 private:
  struct Fragment {
    Version head;
    StoredEntry stored;
  };
  struct Accepted {
    Contribution contribution;
    std::optional<Version> used_by;  // the version whose round counted it
  };

  absl::Status CheckFragment(FragmentId fragment) const;
  absl::Status CheckCounted(const RoundRecord& record, const Contribution& contribution) const;

  std::optional<RunIdentity> identity_;
  uint64_t last_config_ = 0;
  std::vector<Fragment> fragments_;  // by id
  std::map<ContributionKey, Accepted> accepted_;
  // Left out of a round: their records went with its commit, their payloads go with the next stored version
  // (a checkpoint that is just being made may name them still). Until then the keys are not free.
  std::set<ContributionKey> passed_over_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_STORE_INDEX_H_
