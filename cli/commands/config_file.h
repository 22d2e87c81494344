#ifndef ATOLL_CLI_COMMANDS_CONFIG_FILE_H_
#define ATOLL_CLI_COMMANDS_CONFIG_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "atoll/v1/run.pb.h"
#include "protos/config/run_config.h"

namespace atl {

/// Reads a configuration file like TryRunConfigFile. Prints the file's warnings to standard error, also if
/// the file has problems.
RunConfigReading TryConfigFile(const std::string& path);

/// TryConfigFile of a file that must have no problems.
absl::StatusOr<v1::RunConfig> LoadConfigFile(const std::string& path);

}  // namespace atl

#endif  // ATOLL_CLI_COMMANDS_CONFIG_FILE_H_
