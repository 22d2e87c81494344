#include <pwd.h>
#include <unistd.h>

#include <cstdio>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "common/exit_codes.h"
#include "common/status.h"
#include "common/trace_context.h"
#include "protos/transport/grpc_log.h"
#include "protos/transport/security_flags.h"

namespace {

constexpr char kFooter[] = R"(Examples:
  atollctl doctor run.yaml --dir ./run1        is this machine fit for it?
  atollctl plan run.yaml --bandwidth 100Mbit/s what will it need and take?
  atollctl watch                               the run, live
  atollctl status --json | jq .committed_tokens
  atollctl workers drain w3 --reason "moving"  finish the round, push, leave
  atollctl config set round.deadline_s=120     from the next round on
  atollctl checkpoint create before-lr-change
  atollctl tokens create --role worker --name w3 --out w3.token
  atollctl export --out model.safetensors      the published parameters
docs/cli.md has every command with an example.
)";

/// Who is named in the audit line when nobody says otherwise.
std::string LoginName() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? absl::StrFormat("uid-%d", ::getuid()) : std::string(entry->pw_name);
}

void AddGlobalOptions(CLI::App& app, atoll::GlobalOptions& global) {
  app.add_option("--admin", global.admin, "The coordinator's admin port")
      ->capture_default_str()
      ->envname("ATOLL_ADMIN");
  app.add_option("--coordinator", global.coordinator, "The coordinator's data port")
      ->capture_default_str()
      ->envname("ATOLL_COORDINATOR");
  app.add_option("--user", global.user, "Who is named in the audit line of a change; default: the login name")
      ->envname("USER");
  app.add_option("--timeout", global.timeout_s, "Seconds to wait for the coordinator to answer")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option(
         "--traceparent", global.traceparent,
         "The trace that this command belongs to (W3C Trace Context), for the coordinator's log; default: "
         "a new one")
      ->envname("TRACEPARENT");
  atoll::AddClientSecurityFlags(app, global.security_flags);
  app.add_flag("--json", global.json, "For programs: JSON on standard output");
}

void AddCommands(CLI::App& app, const atoll::GlobalOptions& global, atoll::Action& action) {
  atoll::AddStatusCommand(app, global, action);
  atoll::AddWatchCommand(app, global, action);
  atoll::AddEventsCommand(app, global, action);
  atoll::AddMetricsCommand(app, global, action);
  atoll::AddRunCommand(app, global, action);
  atoll::AddWorkersCommand(app, global, action);
  atoll::AddLauncherCommand(app, global, action);
  atoll::AddConfigCommand(app, global, action);
  atoll::AddTokensCommand(app, global, action);
  atoll::AddCheckpointCommand(app, global, action);
  atoll::AddVerifyCommand(app, global, action);
  atoll::AddExportCommand(app, global, action);
  atoll::AddPlanCommand(app, global, action);
  atoll::AddDoctorCommand(app, global, action);
  atoll::AddCompletionCommand(app, action);
  atoll::AddFieldCommand(app, action);
}

absl::Status Run(atoll::GlobalOptions& global, const atoll::Action& action) {
  if (!action) return absl::InvalidArgumentError("nothing to do; see atollctl --help");
  atoll::RouteGrpcLog(atoll::Logger());
  static const atoll::SystemClock clock;
  ATOLL_ASSIGN_OR_RETURN(global.security,
                         atoll::ChannelSecurity::Create(global.security_flags, &clock, atoll::Logger()));
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("atollctl: look at and steer an Atoll run.", "atollctl");
  atoll::GlobalOptions global;
  atoll::Action action;
  app.set_version_flag("--version",
                       absl::StrFormat("atollctl %s (%s)", atoll::kVersion, atoll::kGitRevision));
  AddGlobalOptions(app, global);
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(std::string(kFooter) + "\n" + atoll::ExitCodeTable());
  AddCommands(app, global, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : atoll::ToInt(atoll::ExitCode::kUsage);
  }
  global.admin_given = app.get_option("--admin")->count() > 0;
  global.coordinator_given = app.get_option("--coordinator")->count() > 0;
  if (global.user.empty()) global.user = LoginName();
  // As the specification asks for, one that is not valid is as none.
  const atoll::ScopedTrace trace(atoll::ParseTraceparent(global.traceparent).value_or(atoll::NewTrace()));
  const absl::Status status = Run(global, action);
  if (status.ok()) return atoll::ToInt(atoll::ExitCode::kOk);
  std::fprintf(stderr, "atollctl: %s\n", std::string(status.message()).c_str());
  return atoll::ToInt(atoll::ExitCodeOf(status));
}
