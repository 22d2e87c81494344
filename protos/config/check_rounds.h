#ifndef ATOLL_PROTOS_CONFIG_CHECK_ROUNDS_H_
#define ATOLL_PROTOS_CONFIG_CHECK_ROUNDS_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// Contributions that a robust merge needs, so that a majority is right when one is wrong.
inline constexpr uint32_t kFewestForRobust = 3;

/// Rules between merge.*, outer.*, round.mode and the number of workers. Call only if every field is valid by
/// itself.
std::vector<ConfigProblem> CheckRounds(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_ROUNDS_H_
