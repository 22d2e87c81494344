#ifndef ATOLL_PROTOS_CONFIG_RUN_CONFIG_H_
#define ATOLL_PROTOS_CONFIG_RUN_CONFIG_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "atoll/v1/run.pb.h"
#include "core/run_options.h"

// A run's configuration: YAML (what people write), atoll.v1.RunConfig (what travels and is recorded),
// RunOptions (what the code reads).

namespace atl {

/// Reads YAML. Unknown, duplicate and missing fields, wrong types, values out of range and fields that
/// contradict each other are refused with InvalidArgument, one line for each: "source:line: round.quorum: 1.5
/// is out of range; allowed:
/// ...". What is not given stands in the result with its default, so that the recorded configuration is
/// complete.
absl::StatusOr<v1::RunConfig> ParseRunConfig(std::string_view yaml, std::string_view source_name);

/// ParseRunConfig of a file.
absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path);

/// A file, and what it leaves open.
struct RunConfigFile {
  v1::RunConfig config;
  bool staleness_open = false;  // round.staleness_limit: the result has DefaultStalenessLimit
  /// Fields that a run may have to keep as it has them (protos/config/assumed_fields.h).
  std::vector<std::string> assumed;
  /// Values that have new names, a line each: "source:line: round.mode: ...". Tell the user.
  std::vector<std::string> warnings;
};
absl::StatusOr<RunConfigFile> ReadRunConfig(std::string_view yaml, std::string_view source_name);
absl::StatusOr<RunConfigFile> ReadRunConfigFile(const std::string& path);

/// round.staleness_limit of a configuration that does not give it: 1 where rounds wait for every worker
/// (round.mode barrier, round.quorum 1) and the merge is an average (mean, rda), else 0. Where everybody is
/// waited for, only a joiner's first contribution comes late, or one after the deadline: it would be lost.
/// Where rounds close without stragglers, one comes late every round, and folding it costs quality
/// (docs/reference/benchmarks.md, "Late contributions"). Robust merges, bans by rule and privacy count on one
/// contribution of each worker in a round.
uint32_t DefaultStalenessLimit(const v1::RunConfig& config);

/// The configuration as plain values, with 0 resolved where it means "as many as". Checks everything again,
/// for it may have come over the wire: InvalidArgument, one line for each problem, "round.quorum: ...".
/// Sections that an older coordinator did not know get their defaults.
absl::StatusOr<RunOptions> ToRunOptions(const v1::RunConfig& config);

/// YAML with every field, which ParseRunConfig reads back to the same configuration.
std::string FormatRunConfigYaml(const v1::RunConfig& config);

/// SHA-256 (64 hexadecimal digits) of the configuration: equal for equal configurations of one build.
std::string RunConfigHash(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_RUN_CONFIG_H_
