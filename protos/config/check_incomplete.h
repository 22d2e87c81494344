#ifndef ATOLL_PROTOS_CONFIG_CHECK_INCOMPLETE_H_
#define ATOLL_PROTOS_CONFIG_CHECK_INCOMPLETE_H_

#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"
#include "protos/config/yaml_reader.h"

namespace atl {

/// Rules between fields and CheckNames, for a file with the problems of `reading`: finds what is wrong
/// whatever valid values the invalid fields get. Tries their defaults, bounds and choices. Problems of the
/// invalid fields themselves are omitted, because the user already has to change these fields.
std::vector<ConfigProblem> CheckIncomplete(const v1::RunConfig& config, const YamlReading& reading);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_INCOMPLETE_H_
