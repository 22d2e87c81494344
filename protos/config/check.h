#ifndef ATOLL_PROTOS_CONFIG_CHECK_H_
#define ATOLL_PROTOS_CONFIG_CHECK_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// Every field against its own rule in run.proto.
std::vector<ConfigProblem> CheckFields(const v1::RunConfig& config);

/// The names among the fields. Needs nothing of the other fields.
std::vector<ConfigProblem> CheckNames(const v1::RunConfig& config);

/// What fields demand of each other, and CheckNames. Only for a configuration whose fields are each right.
std::vector<ConfigProblem> CheckTogether(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_H_
