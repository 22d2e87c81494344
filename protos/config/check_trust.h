#ifndef ATOLL_PROTOS_CONFIG_CHECK_TRUST_H_
#define ATOLL_PROTOS_CONFIG_CHECK_TRUST_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// Rules between `offenders`, `privacy` and other sections. Rejects a ban rule that could ban an honest
/// worker and privacy settings that would not protect. Call only if every field is valid by itself.
std::vector<ConfigProblem> CheckTrust(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_TRUST_H_
