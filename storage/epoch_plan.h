#ifndef ATOLL_STORAGE_EPOCH_PLAN_H_
#define ATOLL_STORAGE_EPOCH_PLAN_H_

#include "absl/status/status.h"
#include "storage/store_index.h"

namespace atl {

/// InvalidArgument unless every fragment gets version head + 1 of its shape in a new epoch, and every worker
/// has a valid name.
absl::Status CheckEpoch(const StoreIndex& store_index, const EpochStart& start);

/// Requires that CheckEpoch said OK.
EpochPlan PlanEpoch(const StoreIndex& store_index, const EpochStart& start);

}  // namespace atl

#endif  // ATOLL_STORAGE_EPOCH_PLAN_H_
