#ifndef ATOLL_PROTOS_CONFIG_CHECK_SYNC_H_
#define ATOLL_PROTOS_CONFIG_CHECK_SYNC_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// Rules between the fields of `sync` and other sections. Call only if every field is valid by itself.
std::vector<ConfigProblem> CheckSync(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_SYNC_H_
