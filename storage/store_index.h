#ifndef ATOLL_STORAGE_STORE_INDEX_H_
#define ATOLL_STORAGE_STORE_INDEX_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "storage/contribution_index.h"
#include "storage/record.h"
#include "storage/run_store.h"

namespace atl {

/// What BeginEpoch writes, and the contributions that it drops: those that no round included.
struct EpochPlan {
  RunIdentity identity;
  std::vector<HeadEntry> heads;
  std::vector<StoredEntry> stored;
  std::vector<ContributionKey> dropped_contributions;
};

/// The state that a store needs to validate the next call: heads, stored versions, accepted contributions.
/// Both stores call Check... before a write and Applied... after it is durable, so that they reject the same
/// calls with the same messages. Pure: no I/O. Not thread-safe.
class StoreIndex {
 public:
  /// The data that storing `stored.versions.back()` drops.
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
  /// FailedPrecondition unless record.version == head + 1 and each contribution is accepted, as named, and
  /// in no other round.
  absl::Status CheckCommit(const RoundRecord& record) const;
  /// FailedPrecondition unless stored < version <= head, or version == stored (which repeats the retention).
  absl::Status CheckStore(const FragmentLayout& layout, Version version, const FragmentTensorsView& tensors,
                          uint32_t keep) const;
  /// NotFound naming the existing versions.
  absl::Status CheckRead(const FragmentLayout& layout, Version version) const;

  /// NotFound, FailedPrecondition.
  absl::StatusOr<StoredEntry> CheckStored(FragmentId fragment) const;
  /// Requires that CheckStore said OK.
  Retention PlanRetention(FragmentId fragment, Version version, uint32_t keep) const;

  void AppliedCreate(const RunIdentity& identity) { identity_ = identity; }
  void AppliedConfig(const ConfigEntry& config) { last_config_ = config.version; }
  void AppliedFragment(const HeadEntry& head, const StoredEntry& stored);
  void AppliedAccept(const Contribution& contribution) { contributions_.Accept(contribution); }
  void AppliedCommit(const RoundRecord& record);
  void AppliedRetention(const Retention& retention);
  void AppliedEpoch(const EpochPlan& plan);
  /// While loading: this round was committed earlier.
  void AppliedHistory(const RoundRecord& record) { contributions_.Count(record); }

  const std::optional<RunIdentity>& identity() const { return identity_; }
  /// The newest.
  uint64_t config_version() const { return last_config_; }
  bool seeded() const { return !fragments_.empty(); }
  uint32_t fragment_count() const { return static_cast<uint32_t>(fragments_.size()); }
  Version head(FragmentId fragment) const { return fragments_[fragment.value()].head; }
  const StoredEntry& stored(FragmentId fragment) const { return fragments_[fragment.value()].stored; }
  const ContributionIndex& contributions() const { return contributions_; }

 private:
  struct Fragment {
    Version head;
    StoredEntry stored;
  };

  absl::Status CheckFragment(FragmentId fragment) const;

  std::optional<RunIdentity> identity_;
  uint64_t last_config_ = 0;
  std::vector<Fragment> fragments_;  // by id
  ContributionIndex contributions_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_STORE_INDEX_H_
