#ifndef ATOLL_PROTOS_CONFIG_PROBLEM_H_
#define ATOLL_PROTOS_CONFIG_PROBLEM_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace atl {

/// One thing wrong with a configuration.
struct ConfigProblem {
  std::string path;  // round.quorum
  std::string text;  // 1.5 is out of range; allowed: ...
  int line = 0;      // from 1; 0: not known
};

/// The value as a message may show it: without control characters, cut when long, in quotes.
std::string Quoted(std::string_view value);

/// InvalidArgument with one line a problem, "source:line: path: text", in the order of the lines; OK when
/// there is none. Beyond 50 the rest is counted only. An empty source is left out.
absl::Status ProblemsToStatus(std::vector<ConfigProblem> problems, std::string_view source_name);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_PROBLEM_H_
