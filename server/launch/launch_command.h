#ifndef ATOLL_SERVER_LAUNCH_LAUNCH_COMMAND_H_
#define ATOLL_SERVER_LAUNCH_LAUNCH_COMMAND_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"

namespace atl {

/// How a worker is started. The command line is
///   program arguments... --coordinator ADDRESS --name NAME --state-dir STATE_ROOT/NAME credentials...
/// so that a wrapper (numactl, nice, ssh) can precede the worker's program. {name}, {number}, {coordinator}
/// and {state_dir} are replaced in every argument.
struct LaunchCommand {
  std::string program = "atoll-worker";
  std::vector<std::string> arguments = {};
  std::string state_root = {};
  std::vector<std::string> credentials = {};  // arguments that authenticate it
  /// Called before each start to create the files that the credentials name. May be empty.
  std::function<absl::Status(const WorkerName&)> prepare = {};
};

std::vector<std::string> CommandLine(const LaunchCommand& command, const WorkerName& name, uint32_t number,
                                     const std::string& coordinator);

/// prefix + number.
WorkerName NumberedName(std::string_view prefix, uint32_t number);
/// The number of a name that NumberedName makes; nullopt for any other.
std::optional<uint32_t> NumberOf(std::string_view prefix, std::string_view name);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_LAUNCH_COMMAND_H_
