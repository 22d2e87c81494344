#ifndef ATOLL_CLI_COMMANDS_COMMANDS_H_
#define ATOLL_CLI_COMMANDS_COMMANDS_H_

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

// One function per subcommand of atollctl: adds its options to `app` and stores what to run when it was
// chosen.

namespace atoll {

/// What all commands share.
struct GlobalOptions {
  std::string admin = "127.0.0.1:7601";
  std::string coordinator = "127.0.0.1:7600";
  double timeout_s = 10;
  bool json = false;
};

using Action = std::function<absl::Status()>;

void AddStatusCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddWorkersCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddWatchCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddEventsCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddExportCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddConfigCommand(CLI::App& app, const GlobalOptions& global, Action& action);

}  // namespace atoll

#endif  // ATOLL_CLI_COMMANDS_COMMANDS_H_
