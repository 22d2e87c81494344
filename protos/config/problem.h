#ifndef ATOLL_PROTOS_CONFIG_PROBLEM_H_
#define ATOLL_PROTOS_CONFIG_PROBLEM_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace atl {

/// One problem of a configuration.
struct ConfigProblem {
  std::string path;  // round.quorum
  std::string text;  // 1.5 is out of range; allowed: ...
  int line = 0;      // from 1; 0: unknown
};

/// The value as messages show it: in quotes, with control characters escaped, shortened when long.
std::string Quoted(std::string_view value);

/// InvalidArgument with one line per problem, "source:line: path: text", sorted by line; OK without problems.
/// Lists at most 50 problems and counts the rest. An empty source is omitted.
absl::Status ProblemsToStatus(std::vector<ConfigProblem> problems, std::string_view source_name);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_PROBLEM_H_
