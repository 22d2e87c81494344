#ifndef ATOLL_PROTOS_CONFIG_CHECK_TRUST_H_
#define ATOLL_PROTOS_CONFIG_CHECK_TRUST_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// What the fields of `offenders` and `privacy` demand of each other and of the other sections, every field
/// being valid: a rule that could ban the wrong one, and privacy that would not hold, are refused.
std::vector<ConfigProblem> CheckTrust(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_TRUST_H_
