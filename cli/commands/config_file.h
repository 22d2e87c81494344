#ifndef ATOLL_CLI_COMMANDS_CONFIG_FILE_H_
#define ATOLL_CLI_COMMANDS_CONFIG_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "atoll/v1/run.pb.h"

namespace atl {

/// Reads a configuration file like LoadRunConfig. Prints a warning to standard error for each value whose old
/// name the next release rejects.
absl::StatusOr<v1::RunConfig> LoadConfigFile(const std::string& path);

}  // namespace atl

#endif  // ATOLL_CLI_COMMANDS_CONFIG_FILE_H_
