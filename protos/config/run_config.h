#ifndef ATOLL_PROTOS_CONFIG_RUN_CONFIG_H_
#define ATOLL_PROTOS_CONFIG_RUN_CONFIG_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/run.pb.h"
#include "core/run_options.h"

// A run's configuration has three forms: YAML (users write it), atoll.v1.RunConfig (sent and recorded), and
// RunOptions (read by the code).

namespace atl {

/// Reads YAML. Rejects unknown, duplicate and missing fields, wrong types, values out of range and fields
/// that contradict each other with InvalidArgument, one line per problem: "source:line: round.quorum: 1.5 is
/// out of range; allowed: ...". Absent fields get their defaults, so the recorded configuration is complete.
absl::StatusOr<v1::RunConfig> ParseRunConfig(std::string_view yaml, std::string_view source_name);

/// ParseRunConfig of a file.
absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path);

/// The configuration of a file, and which fields the file does not set.
struct RunConfigFile {
  v1::RunConfig config;
  bool staleness_open = false;  // round.staleness_limit is absent; `config` has DefaultStalenessLimit
  /// Absent fields that an existing run must keep as recorded (protos/config/assumed_fields.h).
  std::vector<std::string> assumed;
  /// Values that have new names, and fields without effect, one line each: "source:line: round.mode: ...".
  /// Show them to the user.
  std::vector<std::string> warnings;
};
absl::StatusOr<RunConfigFile> ReadRunConfig(std::string_view yaml, std::string_view source_name);
absl::StatusOr<RunConfigFile> ReadRunConfigFile(const std::string& path);

/// A configuration read as far as possible, for commands that show everything that they can say of a file.
struct RunConfigReading {
  RunConfigFile file;   // unless `status` is OK: invalid fields are not set, others may be missing
  absl::Status status;  // that of ReadRunConfig
};
RunConfigReading TryRunConfig(std::string_view yaml, std::string_view source_name);
RunConfigReading TryRunConfigFile(const std::string& path);

/// The default of round.staleness_limit: 1 if rounds wait for every worker (round.mode barrier, round.quorum
/// 1) and the merge is an average (mean, rda); otherwise 0.
/// If rounds wait for every worker, only a joiner's first contribution or one after the deadline is late, and
/// a limit of 0 would lose it. If rounds close without stragglers, contributions are late in every round, and
/// merging them costs quality (docs/reference/benchmarks.md, "Late contributions"). Robust merges, bans by
/// rule and privacy need at most one contribution per worker and round.
uint32_t DefaultStalenessLimit(const v1::RunConfig& config);

/// Converts the configuration to plain values and resolves each 0 that stands for another field's value.
/// Checks everything again, because the configuration may come from the network: InvalidArgument, one line
/// per problem, "round.quorum: ...". Sections that an older coordinator does not know get their defaults.
absl::StatusOr<RunOptions> ToRunOptions(const v1::RunConfig& config);

/// Writes YAML with every field. ParseRunConfig reads it back to the same configuration.
std::string FormatRunConfigYaml(const v1::RunConfig& config);

/// SHA-256 (64 hexadecimal digits) of the configuration: equal for equal configurations of one build.
std::string RunConfigHash(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_RUN_CONFIG_H_
