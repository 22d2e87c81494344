#include "cli/commands/config_file.h"

#include <cstdio>
#include <utility>

#include "common/status.h"

namespace atl {

RunConfigReading TryConfigFile(const std::string& path) {
  RunConfigReading reading = TryRunConfigFile(path);
  for (const std::string& warning : reading.file.warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  return reading;
}

absl::StatusOr<v1::RunConfig> LoadConfigFile(const std::string& path) {
  RunConfigReading reading = TryConfigFile(path);
  ATOLL_RETURN_IF_ERROR(reading.status);
  return std::move(reading.file.config);
}

}  // namespace atl
