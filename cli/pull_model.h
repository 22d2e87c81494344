#ifndef ATOLL_CLI_PULL_MODEL_H_
#define ATOLL_CLI_PULL_MODEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cli/observer_client.h"
#include "common/clock.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"

namespace atl {

/// The published parameters, one fragment for each layout. In a blocking run all are of one version:
/// fragments that are behind are pulled again, and after five times it is Unavailable. In an overlapped run
/// each has a version of its own. `stall` as in PullLimits.
absl::StatusOr<std::vector<PulledFragment>> PullModel(ObserverClient& client,
                                                      const std::vector<FragmentLayout>& layouts,
                                                      SyncMode mode, Duration stall);

}  // namespace atl

#endif  // ATOLL_CLI_PULL_MODEL_H_
