#ifndef ATOLL_CLI_COMMANDS_COMMANDS_H_
#define ATOLL_CLI_COMMANDS_COMMANDS_H_

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/address.h"
#include "cli/observer_client.h"
#include "cli/rpc_client.h"

// One function per subcommand of atollctl. Each adds its options to `app` and stores the action to run if the
// user chooses it.

namespace atl {

/// Options that all commands share.
struct GlobalOptions {
  PortAddress admin{.address = "127.0.0.1:7601"};
  PortAddress coordinator{.address = "127.0.0.1:7600"};
  std::string user;
  std::string traceparent;
  double timeout_s = 10;
  bool json = false;
  ClientSecurityFlags security_flags;
  /// Reads the files of the flags at the first call, so that commands without a coordinator do not need them.
  std::function<absl::StatusOr<SecurityPtr>()> security;
};

using Action = std::function<absl::Status()>;

/// Prints to standard error. Empty with --json, because programs read that output.
inline WaitNotice WaitNoticeFor(const GlobalOptions& global) {
  if (global.json) return nullptr;
  return [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
}

/// Its calls fail as CheckAdminPort does.
inline AdminClient MakeAdminClient(const GlobalOptions& global) {
  const absl::Status mixed = CheckAdminPort(global.admin, global.coordinator);
  absl::StatusOr<SecurityPtr> security = mixed.ok() ? global.security() : mixed;
  return {global.admin.address, Seconds(global.timeout_s), global.user, std::move(security),
          WaitNoticeFor(global)};
}

/// Joins at the data port. Fails as CheckDataPort does.
absl::StatusOr<std::unique_ptr<ObserverClient>> MakeObserver(const GlobalOptions& global,
                                                             const char* command);

// Commands that only read.
void AddStatusCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddWatchCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddEventsCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddMetricsCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddCompareCommand(CLI::App& app, const GlobalOptions& global, Action& action);
// Commands that change the run.
void AddRunCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddWorkersCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddLauncherCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddConfigCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddTokensCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddCheckpointCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddVerifyCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddExportCommand(CLI::App& app, const GlobalOptions& global, Action& action);
// Commands for the time before a run.
void AddPlanCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddDoctorCommand(CLI::App& app, const GlobalOptions& global, Action& action);
void AddCompletionCommand(CLI::App& app, Action& action);
/// For scripts: prints one field of another command's --json output.
void AddFieldCommand(CLI::App& app, Action& action);

// Parts of `config` that ask the coordinator.
void AddConfigSetCommand(CLI::App& config, const GlobalOptions& global, Action& action);
void AddConfigHistoryCommand(CLI::App& config, const GlobalOptions& global, Action& action);
/// `run status` is an alias of `status`.
void AddStatusOptions(CLI::App& command, const GlobalOptions& global, Action& action);

}  // namespace atl

#endif  // ATOLL_CLI_COMMANDS_COMMANDS_H_
