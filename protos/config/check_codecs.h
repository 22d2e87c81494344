#ifndef ATOLL_PROTOS_CONFIG_CHECK_CODECS_H_
#define ATOLL_PROTOS_CONFIG_CHECK_CODECS_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// What codecs, error feedback, merge and outer optimizer demand of each other: recipes that must not be
/// mixed. Only for a configuration whose fields are each right.
std::vector<ConfigProblem> CheckCodecs(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_CODECS_H_
