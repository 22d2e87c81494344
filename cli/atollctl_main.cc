#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/exit_codes.h"
#include "common/process_setup.h"
#include "common/standard_output.h"
#include "common/status.h"
#include "common/trace_context.h"
#include "protos/transport/grpc_log.h"
#include "protos/transport/security_flags.h"

namespace {

const atl::HelpText& ProgramHelp() {
  static const auto& text = *new atl::HelpText{
      .examples = {{"atollctl doctor run.yaml --dir ./run1", "Check this machine before a run"},
                   {"atollctl watch", "Follow the run"},
                   {"atollctl workers drain w3 --reason \"moving\"", "Take a worker out of the run"},
                   {"atollctl export --out model.safetensors", "Save the published parameters"}},
      .exit_codes = {},
      .notes =
          "'atollctl COMMAND --help' shows the options, an example and the exit codes of one command; "
          "docs/reference/cli.md lists all commands."};
  return text;
}

/// The default of --user, which is the name in the audit record.
std::string LoginName() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? absl::StrFormat("uid-%d", ::getuid()) : std::string(entry->pw_name);
}

void AddGlobalOptions(CLI::App& app, atl::GlobalOptions& global) {
  app.add_option("--admin", global.admin.address, "Address of the coordinator's admin port")
      ->capture_default_str()
      ->envname("ATOLL_ADMIN");
  app.add_option("--coordinator", global.coordinator.address, "Address of the coordinator's data port")
      ->capture_default_str()
      ->envname("ATOLL_COORDINATOR");
  app.add_option("--user", global.user, "Name recorded with a change; default: the login name")
      ->envname("USER");
  app.add_option("--timeout", global.timeout_s, "Seconds to wait for the coordinator")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--traceparent", global.traceparent,
                 "Trace of this command (W3C Trace Context), for the coordinator's log; default: a new one")
      ->envname("TRACEPARENT");
  atl::AddClientSecurityFlags(app, global.security_flags);
  app.add_flag("--json", global.json, "Print JSON on standard output");
}

void AddCommands(CLI::App& app, const atl::GlobalOptions& global, atl::Action& action) {
  atl::AddStatusCommand(app, global, action);
  atl::AddWatchCommand(app, global, action);
  atl::AddEventsCommand(app, global, action);
  atl::AddMetricsCommand(app, global, action);
  atl::AddCompareCommand(app, global, action);
  atl::AddRunCommand(app, global, action);
  atl::AddWorkersCommand(app, global, action);
  atl::AddLauncherCommand(app, global, action);
  atl::AddConfigCommand(app, global, action);
  atl::AddTokensCommand(app, global, action);
  atl::AddCheckpointCommand(app, global, action);
  atl::AddVerifyCommand(app, global, action);
  atl::AddExportCommand(app, global, action);
  atl::AddPlanCommand(app, global, action);
  atl::AddDoctorCommand(app, global, action);
  atl::AddCompletionCommand(app, action);
  atl::AddFieldCommand(app, action);
}

/// For one thread: the commands open their clients one after the other.
absl::StatusOr<atl::SecurityPtr> ReadSecurity(const atl::ClientSecurityFlags& flags) {
  static const atl::SystemClock clock;
  static auto& security =
      *new absl::StatusOr<atl::SecurityPtr>(atl::ChannelSecurity::Create(flags, &clock, atl::Logger()));
  return security;
}

/// CLI11 counts a value of the environment like one of the command line.
atl::AddressSource SourceOf(const CLI::App& app, const std::string& option,
                            const std::vector<std::string>& words) {
  if (app.get_option(option)->count() == 0) return atl::AddressSource::kDefault;
  const bool named = std::ranges::any_of(
      words, [&](const std::string& word) { return word == option || absl::StartsWith(word, option + "="); });
  return named ? atl::AddressSource::kCommandLine : atl::AddressSource::kEnvironment;
}

absl::Status Run(atl::GlobalOptions& global, const atl::Action& action) {
  if (!action) return absl::InvalidArgumentError("nothing to do; see atollctl --help");
  atl::RouteGrpcLog(atl::Logger());
  global.security = [&global] { return ReadSecurity(global.security_flags); };
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  atl::SetUpProcess();
  CLI::App app("Inspect and control an Atoll run.", "atollctl");
  atl::GlobalOptions global;
  atl::Action action;
  app.set_version_flag("--version", absl::StrFormat("atollctl %s (%s)", atl::kVersion, atl::kGitRevision));
  AddGlobalOptions(app, global);
  app.require_subcommand(1);
  app.fallthrough();
  AddCommands(app, global, action);
  atl::SetHelp(app, ProgramHelp());
  if (const auto code = atl::ParseCommandLine(app, argc, argv)) return atl::ToInt(*code);
  const std::vector<std::string> words(argv, argv + argc);
  global.admin.source = SourceOf(app, "--admin", words);
  global.coordinator.source = SourceOf(app, "--coordinator", words);
  if (global.user.empty()) global.user = LoginName();
  // As the specification requires, an invalid traceparent counts as absent.
  const atl::ScopedTrace trace(atl::ParseTraceparent(global.traceparent).value_or(atl::NewTrace()));
  absl::Status status = Run(global, action);
  status.Update(atl::FlushStandardOutput());
  if (status.ok()) return atl::ToInt(atl::ExitCode::kOk);
  std::fprintf(stderr, "atollctl: %s\n", std::string(status.message()).c_str());
  return atl::ToInt(atl::CommandExitCode(status));
}
