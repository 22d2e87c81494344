#ifndef ATOLL_PROTOS_CONFIG_CHECK_CODECS_H_
#define ATOLL_PROTOS_CONFIG_CHECK_CODECS_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// Rules between codecs, error feedback, merge and outer optimizer: combinations that do not train well. Call
/// only if every field is valid by itself.
std::vector<ConfigProblem> CheckCodecs(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_CODECS_H_
