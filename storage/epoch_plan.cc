#include "storage/epoch_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/run_checks.h"

namespace atl {

absl::Status CheckEpoch(const StoreIndex& store_index, const EpochStart& start) {
  ATOLL_RETURN_IF_ERROR(store_index.CheckStored(FragmentId(0)).status());
  if (start.epoch == store_index.identity()->epoch || start.epoch == Epoch()) {
    return absl::InvalidArgumentError(absl::StrFormat("epoch %016x is not a new one", start.epoch.value()));
  }
  const size_t count = store_index.fragment_count();
  if (start.layouts.size() != count || start.tensors.size() != count || start.records.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("new contents for %d fragments (%d tensors, %d records); "
                        "the run has %d",
                        start.layouts.size(), start.tensors.size(), start.records.size(), count));
  }
  for (const WorkerEntry& worker : start.workers) ATOLL_RETURN_IF_ERROR(CheckWorkerName(worker.name));
  for (size_t i = 0; i < count; ++i) {
    const RoundRecord& record = start.records[i];
    const FragmentId id(static_cast<uint32_t>(i));
    const Version next = Next(store_index.head(id));
    const StoredEntry& stored = store_index.stored(id);
    if (start.layouts[i].id != id || record.fragment != id || record.epoch != start.epoch ||
        record.version != next || !record.contributions.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("new contents of fragment %d are given as %s in epoch %016x with %d contributions; "
                          "expected are version %d in epoch %016x and none",
                          i, Describe(record.fragment, record.version), record.epoch.value(),
                          record.contributions.size(), next.value(), start.epoch.value()));
    }
    ATOLL_RETURN_IF_ERROR(CheckTensors(id, stored.elements, stored.state_vectors, start.tensors[i]));
  }
  return absl::OkStatus();
}

EpochPlan PlanEpoch(const StoreIndex& store_index, const EpochStart& start) {
  EpochPlan plan{.identity = *store_index.identity(),
                 .heads = {},
                 .stored = {},
                 .dropped_contributions = store_index.contributions().UncountedKeys()};
  plan.identity.epoch = start.epoch;
  for (const RoundRecord& record : start.records) {
    plan.heads.push_back({.fragment = record.fragment,
                          .epoch = start.epoch,
                          .version = record.version,
                          .config_version = store_index.config_version()});
    // The versions before stay as long as retention keeps them.
    StoredEntry& stored = plan.stored.emplace_back(store_index.stored(record.fragment));
    stored.epoch = start.epoch;
    stored.versions.push_back(record.version);
  }
  return plan;
}

}  // namespace atl
