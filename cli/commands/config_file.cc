#include "cli/commands/config_file.h"

#include <cstdio>
#include <utility>

#include "common/status.h"
#include "protos/config/run_config.h"

namespace atl {

absl::StatusOr<v1::RunConfig> LoadConfigFile(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(RunConfigFile file, ReadRunConfigFile(path));
  for (const std::string& warning : file.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return std::move(file.config);
}

}  // namespace atl
