#ifndef ATOLL_PROTOS_CONFIG_CHECK_H_
#define ATOLL_PROTOS_CONFIG_CHECK_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// Checks every field against its own rule in run.proto.
std::vector<ConfigProblem> CheckFields(const v1::RunConfig& config);

/// Checks the fields that hold names. Does not depend on other fields.
std::vector<ConfigProblem> CheckNames(const v1::RunConfig& config);

/// Rules between fields, and CheckNames. Call only if every field is valid by itself; otherwise see
/// CheckIncomplete.
std::vector<ConfigProblem> CheckTogether(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_H_
