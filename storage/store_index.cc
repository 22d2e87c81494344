#include "storage/store_index.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/run_checks.h"

namespace atl {

absl::Status StoreIndex::CheckCreate(const RunIdentity& identity, const ConfigEntry& config) const {
  if (identity_) {
    return absl::AlreadyExistsError(absl::StrFormat("the store already holds run %s", identity_->run_id));
  }
  ATOLL_RETURN_IF_ERROR(CheckIdentity(identity));
  if (config.version == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the first configuration has version %d instead of 1", config.version));
}

absl::Status StoreIndex::CheckCreated() const {
  if (identity_) return absl::OkStatus();
  return absl::FailedPreconditionError("the store holds no run yet: create one first");
}

absl::Status StoreIndex::CheckConfig(const ConfigEntry& config) const {
  ATOLL_RETURN_IF_ERROR(CheckCreated());
  if (config.version == last_config_ + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("configuration version %d does not follow version %d", config.version, last_config_));
}

absl::Status StoreIndex::CheckSeed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                                   const std::vector<FragmentTensorsView>& tensors) const {
  ATOLL_RETURN_IF_ERROR(CheckCreated());
  if (seeded()) return absl::AlreadyExistsError("the run is already seeded");
  ATOLL_RETURN_IF_ERROR(ValidateManifest(manifest));
  if (layouts.empty() || layouts.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("seed: %d layouts for %d sets of tensors", layouts.size(), tensors.size()));
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i].id.value() != i || layouts[i].elements == 0) {
      return absl::InvalidArgumentError(absl::StrFormat("seed: layout %d has fragment id %d and %d elements",
                                                        i, layouts[i].id.value(), layouts[i].elements));
    }
    if (tensors[i].state.size() > kMaxStateVectors) {
      return absl::InvalidArgumentError(absl::StrFormat("seed: %d state vectors; at most %d are stored",
                                                        tensors[i].state.size(), kMaxStateVectors));
    }
    ATOLL_RETURN_IF_ERROR(
        CheckTensors(layouts[i].id, layouts[i].elements, tensors[i].state.size(), tensors[i]));
  }
  return absl::OkStatus();
}

absl::Status StoreIndex::CheckFragment(FragmentId fragment) const {
  ATOLL_RETURN_IF_ERROR(CheckCreated());
  if (!seeded()) return absl::FailedPreconditionError("the run is not seeded yet");
  if (fragment.value() < fragments_.size()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("no fragment %d: the run has %d", fragment.value(), fragments_.size()));
}

absl::Status StoreIndex::CheckUpload(const ContributionKey& key, uint64_t payload_bytes) const {
  ATOLL_RETURN_IF_ERROR(CheckWorkerName(key.worker));
  ATOLL_RETURN_IF_ERROR(CheckFragment(key.fragment));
  if (payload_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: the payload is empty", Describe(key)));
  }
  if (key.epoch != identity_->epoch) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: the run is in epoch %016x", Describe(key), identity_->epoch.value()));
  }
  ATOLL_RETURN_IF_ERROR(contributions_.CheckFree(key));
  const Fragment& fragment = fragments_[key.fragment.value()];
  if (key.base <= fragment.head) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: the current version is %d", Describe(key), fragment.head.value()));
}

absl::Status StoreIndex::CheckCommit(const RoundRecord& record) const {
  ATOLL_RETURN_IF_ERROR(CheckFragment(record.fragment));
  const std::string what = Describe(record.fragment, record.version);
  if (record.epoch != identity_->epoch) {
    return absl::FailedPreconditionError(absl::StrFormat("commit of %s: epoch %016x, but the run is in %016x",
                                                         what, record.epoch.value(),
                                                         identity_->epoch.value()));
  }
  const Version head = fragments_[record.fragment.value()].head;
  if (record.version != Next(head)) {
    return absl::FailedPreconditionError(absl::StrFormat("commit of %s: the head is %d", what, head.value()));
  }
  if (record.config_version < 1 || record.config_version > last_config_) {
    return absl::FailedPreconditionError(
        absl::StrFormat("commit of %s: configuration %d is not recorded; the newest is %d", what,
                        record.config_version, last_config_));
  }
  if (record.contributions.empty() || record.weights.size() != record.contributions.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("commit of %s: %d contributions and %d weights", what,
                                                      record.contributions.size(), record.weights.size()));
  }
  std::set<ContributionKey> seen;
  for (const Contribution& contribution : record.contributions) {
    ATOLL_RETURN_IF_ERROR(contributions_.CheckCounted(record, contribution));
    if (seen.insert(contribution.key).second) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("commit of %s: it contains %s twice", what, Describe(contribution.key)));
  }
  return absl::OkStatus();
}

absl::Status StoreIndex::CheckStore(const FragmentLayout& layout, Version version,
                                    const FragmentTensorsView& tensors, uint32_t keep) const {
  ATOLL_RETURN_IF_ERROR(CheckFragment(layout.id));
  const Fragment& fragment = fragments_[layout.id.value()];
  ATOLL_RETURN_IF_ERROR(
      CheckTensors(layout.id, fragment.stored.elements, fragment.stored.state_vectors, tensors));
  if (keep == 0) return absl::InvalidArgumentError("store: at least one version must be kept");
  const Version stored = fragment.stored.versions.back();
  if (version >= stored && version <= fragment.head) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("store of %s: the stored version is %d, the head is %d", Describe(layout.id, version),
                      stored.value(), fragment.head.value()));
}

absl::Status StoreIndex::CheckRead(const FragmentLayout& layout, Version version) const {
  ATOLL_RETURN_IF_ERROR(CheckFragment(layout.id));
  const StoredEntry& stored = fragments_[layout.id.value()].stored;
  if (layout.elements != stored.elements) {
    return absl::InvalidArgumentError(
        absl::StrFormat("read of fragment %d: layout of %d elements, stored are %d", layout.id.value(),
                        layout.elements, stored.elements));
  }
  if (std::find(stored.versions.begin(), stored.versions.end(), version) != stored.versions.end()) {
    return absl::OkStatus();
  }
  const auto number = [](std::string* out, Version v) { absl::StrAppend(out, v.value()); };
  return absl::NotFoundError(absl::StrFormat("%s is not stored; stored versions: %s",
                                             Describe(layout.id, version),
                                             absl::StrJoin(stored.versions, ", ", number)));
}

StoreIndex::Retention StoreIndex::PlanRetention(FragmentId fragment, Version version, uint32_t keep) const {
  Retention plan;
  plan.stored = fragments_[fragment.value()].stored;
  std::vector<Version>& versions = plan.stored.versions;
  if (version > versions.back()) versions.push_back(version);
  if (versions.size() > keep) {
    const auto first_kept = versions.end() - keep;
    plan.dropped_versions.assign(versions.begin(), first_kept);
    versions.erase(versions.begin(), first_kept);
  }
  plan.dropped_contributions = contributions_.NotNeeded(fragment, versions.front(), identity_->epoch);
  return plan;
}

void StoreIndex::AppliedFragment(const HeadEntry& head, const StoredEntry& stored) {
  fragments_.push_back({.head = head.version, .stored = stored});
}

void StoreIndex::AppliedRetention(const Retention& retention) {
  fragments_[retention.stored.fragment.value()].stored = retention.stored;
  contributions_.Drop(retention.dropped_contributions);
}

absl::StatusOr<StoredEntry> StoreIndex::CheckStored(FragmentId fragment) const {
  ATOLL_RETURN_IF_ERROR(CheckFragment(fragment));
  return fragments_[fragment.value()].stored;
}

void StoreIndex::AppliedEpoch(const EpochPlan& plan) {
  identity_ = plan.identity;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    fragments_[i].head = plan.heads[i].version;
    fragments_[i].stored = plan.stored[i];
  }
  contributions_.Drop(plan.dropped_contributions);
}

void StoreIndex::AppliedCommit(const RoundRecord& record) {
  contributions_.Commit(record);
  fragments_[record.fragment.value()].head = record.version;
}

}  // namespace atl
