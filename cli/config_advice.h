#ifndef ATOLL_CLI_CONFIG_ADVICE_H_
#define ATOLL_CLI_CONFIG_ADVICE_H_

#include <string>
#include <vector>

#include "core/run_options.h"

namespace atl {

/// What a valid configuration probably does not intend, and which field to change; one sentence each.
std::vector<std::string> ConfigAdvice(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIG_ADVICE_H_
