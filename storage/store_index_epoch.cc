#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/run_checks.h"
#include "storage/store_index.h"

// The index's part in a restore: new contents under a new epoch.

namespace atl {

absl::StatusOr<StoredEntry> StoreIndex::CheckStored(FragmentId fragment) const {
  ATOLL_RETURN_IF_ERROR(CheckFragment(fragment));
  return fragments_[fragment.value()].stored;
}

absl::Status StoreIndex::CheckEpoch(const EpochStart& start) const {
  ATOLL_RETURN_IF_ERROR(CheckFragment(FragmentId(0)));
  if (start.epoch == identity_->epoch || start.epoch == Epoch()) {
    return absl::InvalidArgumentError(absl::StrFormat("epoch %016x is not a new one", start.epoch.value()));
  }
  const size_t count = fragments_.size();
  if (start.layouts.size() != count || start.tensors.size() != count || start.records.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("new contents for %d fragments (%d tensors, %d records); "
                        "the run has %d",
                        start.layouts.size(), start.tensors.size(), start.records.size(), count));
  }
  for (size_t i = 0; i < count; ++i) {
    const RoundRecord& record = start.records[i];
    const Fragment& fragment = fragments_[i];
    const FragmentId id(static_cast<uint32_t>(i));
    if (start.layouts[i].id != id || record.fragment != id || record.epoch != start.epoch ||
        record.version != Next(fragment.head) || !record.contributions.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("new contents of fragment %d are given as %s in epoch %016x with %d contributions; "
                          "expected are version %d in epoch %016x and none",
                          i, Describe(record.fragment, record.version), record.epoch.value(),
                          record.contributions.size(), Next(fragment.head).value(), start.epoch.value()));
    }
    ATOLL_RETURN_IF_ERROR(
        CheckTensors(id, fragment.stored.elements, fragment.stored.state_vectors, start.tensors[i]));
  }
  return absl::OkStatus();
}

StoreIndex::EpochPlan StoreIndex::PlanEpoch(const EpochStart& start) const {
  EpochPlan plan{.identity = *identity_, .heads = {}, .stored = {}, .dropped_contributions = {}};
  plan.identity.epoch = start.epoch;
  for (const RoundRecord& record : start.records) {
    plan.heads.push_back({.fragment = record.fragment,
                          .epoch = start.epoch,
                          .version = record.version,
                          .config_version = last_config_});
    // The versions before stay as long as retention keeps them.
    StoredEntry& stored = plan.stored.emplace_back(fragments_[record.fragment.value()].stored);
    stored.epoch = start.epoch;
    stored.versions.push_back(record.version);
  }
  for (const auto& [key, entry] : accepted_) {
    if (!entry.used_by) plan.dropped_contributions.push_back(key);
  }
  return plan;
}

void StoreIndex::AppliedEpoch(const EpochPlan& plan) {
  identity_ = plan.identity;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    fragments_[i].head = plan.heads[i].version;
    fragments_[i].stored = plan.stored[i];
  }
  for (const ContributionKey& key : plan.dropped_contributions) accepted_.erase(key);
}

}  // namespace atl
