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
  if (accepted_.contains(key)) {
    return absl::AlreadyExistsError(absl::StrFormat("%s: accepted already", Describe(key)));
  }
  if (passed_over_.contains(key)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: accepted before, and left out of its round", Describe(key)));
  }
  const Fragment& fragment = fragments_[key.fragment.value()];
  if (key.base <= fragment.head) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: the current version is %d", Describe(key), fragment.head.value()));
}

absl::Status StoreIndex::CheckAccept(const ContributionKey& key, uint64_t payload_bytes,
                                     const Contribution& contribution) const {
  if (contribution.key != key || contribution.payload_bytes != payload_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s with %d bytes does not describe the upload, %s with %d", Describe(contribution.key),
        contribution.payload_bytes, Describe(key), payload_bytes));
  }
  return CheckUpload(key, payload_bytes);
}

absl::Status StoreIndex::CheckCounted(const RoundRecord& record, const Contribution& contribution) const {
  const std::string what = Describe(record.fragment, record.version);
  if (contribution.key.fragment != record.fragment || contribution.key.epoch != record.epoch) {
    return absl::FailedPreconditionError(absl::StrFormat("commit of %s: %s is of another fragment or epoch",
                                                         what, Describe(contribution.key)));
  }
  const auto found = accepted_.find(contribution.key);
  if (found == accepted_.end() || !(found->second.contribution == contribution)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "commit of %s: %s was not accepted as the record has it", what, Describe(contribution.key)));
  }
  if (!found->second.used_by) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("commit of %s: %s already counted in version %d", what,
                                                       Describe(contribution.key),
                                                       found->second.used_by->value()));
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
    ATOLL_RETURN_IF_ERROR(CheckCounted(record, contribution));
    if (seen.insert(contribution.key).second) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("commit of %s: %s is in it twice", what, Describe(contribution.key)));
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
  return absl::FailedPreconditionError(absl::StrFormat("store of %s: stored is %d, the head is %d",
                                                       Describe(layout.id, version), stored.value(),
                                                       fragment.head.value()));
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
  return absl::NotFoundError(absl::StrFormat("%s is not stored; stored are %s", Describe(layout.id, version),
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
  // Replaying version n+1 from n needs the contributions of round n+1: those of rounds up to the oldest
  // version kept serve nothing any more. Those that no round has taken yet are the open round's, however old
  // their base is, unless they are of an epoch that is over.
  const Version oldest = versions.front();
  for (const auto& [key, entry] : accepted_) {
    if (key.fragment != fragment) continue;
    const bool needed = entry.used_by ? *entry.used_by > oldest : key.epoch == identity_->epoch;
    if (!needed) plan.dropped_contributions.push_back(key);
  }
  for (const ContributionKey& key : passed_over_) {
    if (key.fragment == fragment) plan.dropped_contributions.push_back(key);
  }
  return plan;
}

void StoreIndex::AppliedFragment(const HeadEntry& head, const StoredEntry& stored) {
  fragments_.push_back({.head = head.version, .stored = stored});
}

void StoreIndex::AppliedAccept(const Contribution& contribution) {
  accepted_.emplace(contribution.key, Accepted{.contribution = contribution, .used_by = std::nullopt});
}

std::vector<ContributionKey> StoreIndex::PassedOver(const RoundRecord& record) const {
  std::set<ContributionKey> taken;
  for (const Contribution& contribution : record.contributions) taken.insert(contribution.key);
  std::vector<ContributionKey> passed_over;
  for (const auto& [key, entry] : accepted_) {
    if (key.fragment != record.fragment || entry.used_by || taken.contains(key)) continue;
    passed_over.push_back(key);
  }
  return passed_over;
}

void StoreIndex::AppliedCommit(const RoundRecord& record) {
  for (const ContributionKey& key : PassedOver(record)) {
    accepted_.erase(key);
    passed_over_.insert(key);
  }
  fragments_[record.fragment.value()].head = record.version;
  AppliedHistory(record);
}

void StoreIndex::AppliedHistory(const RoundRecord& record) {
  for (const Contribution& contribution : record.contributions) {
    const auto found = accepted_.find(contribution.key);
    if (found != accepted_.end()) found->second.used_by = record.version;
  }
}

void StoreIndex::AppliedRetention(const Retention& retention) {
  fragments_[retention.stored.fragment.value()].stored = retention.stored;
  for (const ContributionKey& key : retention.dropped_contributions) {
    accepted_.erase(key);
    passed_over_.erase(key);
  }
}

const Contribution* StoreIndex::accepted(const ContributionKey& key) const {
  const auto found = accepted_.find(key);
  return found == accepted_.end() ? nullptr : &found->second.contribution;
}

std::vector<Contribution> StoreIndex::Pending(FragmentId fragment) const {
  std::vector<Contribution> pending;
  for (const auto& [key, entry] : accepted_) {
    if (key.epoch == identity_->epoch && key.fragment == fragment && !entry.used_by) {
      pending.push_back(entry.contribution);
    }
  }
  return pending;
}

std::vector<ContributionKey> StoreIndex::UncountedKeys() const {
  std::vector<ContributionKey> keys;
  for (const auto& [key, entry] : accepted_) {
    if (!entry.used_by) keys.push_back(key);
  }
  return keys;
}

std::vector<StoreIndex::Counted> StoreIndex::CountedContributions() const {
  std::vector<Counted> counted;
  for (const auto& [key, entry] : accepted_) {
    if (entry.used_by) counted.push_back({.contribution = entry.contribution, .version = *entry.used_by});
  }
  return counted;
}

}  // namespace atl
