#ifndef ATOLL_PROTOS_CONFIG_CHECK_ROUNDS_H_
#define ATOLL_PROTOS_CONFIG_CHECK_ROUNDS_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// What merge.*, outer.* and round.mode demand of each other and of the number of workers. Only for a
/// configuration whose fields are each right.
std::vector<ConfigProblem> CheckRounds(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_ROUNDS_H_
