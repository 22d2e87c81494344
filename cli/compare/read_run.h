#ifndef ATOLL_CLI_COMPARE_READ_RUN_H_
#define ATOLL_CLI_COMPARE_READ_RUN_H_

#include <istream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/compare/run_curve.h"

namespace atl {

/// A run as the user names it: "FILE", "HOST:PORT", or "NAME=" before either.
struct RunArgument {
  std::string name;  // for the legend; empty: not given
  std::string source;
  bool is_file = false;
};

/// NotFound when it is neither an existing file nor an address.
absl::StatusOr<RunArgument> ParseRunArgument(const std::string& text);

/// Adds the points of a file that `atollctl metrics export` wrote as CSV or as JSON lines. `path` is its name
/// in errors: InvalidArgument names the line.
absl::Status ReadMetrics(const std::string& path, std::istream& in, CurveBuilder& builder);
absl::Status ReadMetricsFile(const std::string& path, CurveBuilder& builder);

}  // namespace atl

#endif  // ATOLL_CLI_COMPARE_READ_RUN_H_
