#ifndef ATOLL_CLI_PULL_MODEL_H_
#define ATOLL_CLI_PULL_MODEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cli/observer_client.h"
#include "common/clock.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"

namespace atl {

/// Pulls the published parameters, one fragment for each layout. In a blocking run, all fragments have the
/// same version: fragments that are behind are pulled again, and after five attempts this returns
/// Unavailable. In an overlapped run, fragments have different versions. `stall` as in PullLimits.
absl::StatusOr<std::vector<PulledFragment>> PullModel(ObserverClient& client,
                                                      const std::vector<FragmentLayout>& layouts,
                                                      SyncMode mode, Duration stall);

}  // namespace atl

#endif  // ATOLL_CLI_PULL_MODEL_H_
