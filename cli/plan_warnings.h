#ifndef ATOLL_CLI_PLAN_WARNINGS_H_
#define ATOLL_CLI_PLAN_WARNINGS_H_

#include <string>
#include <vector>

#include "cli/plan.h"
#include "core/run_options.h"

namespace atl {

/// The run as core/data_passes.h reads it: the same tokens, read by the plan's workers. An island reads one
/// text, whatever the number of its ranks.
RunOptions ReadersOf(const RunOptions& run, const RunPlan& plan);

/// What will not work, or not as intended; each with what to do. `plan`: everything of it but the warnings.
std::vector<std::string> PlanWarnings(const RunOptions& run, const RunPlan& plan);

}  // namespace atl

#endif  // ATOLL_CLI_PLAN_WARNINGS_H_
