#include <cstdio>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "cli/commands/commands.h"
#include "common/exit_codes.h"

namespace {

constexpr char kFooter[] = R"(Examples:
  atollctl watch                               the run, live
  atollctl status --json | jq .committed_tokens
  atollctl config validate run.yaml            what is wrong with a configuration, before anything starts
  atollctl config explain                      every field with its meaning, default and range
  atollctl export --out model.safetensors      the published parameters
)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("atollctl: look at and steer an Atoll run.", "atollctl");
  atoll::GlobalOptions global;
  atoll::Action action;
  app.set_version_flag("--version",
                       absl::StrFormat("atollctl %s (%s)", atoll::kVersion, atoll::kGitRevision));
  app.add_option("--admin", global.admin, "The coordinator's admin port")
      ->capture_default_str()
      ->envname("ATOLL_ADMIN");
  app.add_option("--coordinator", global.coordinator, "The coordinator's data port")
      ->capture_default_str()
      ->envname("ATOLL_COORDINATOR");
  app.add_option("--timeout", global.timeout_s, "Seconds to wait for the coordinator to answer")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", global.json, "For programs: JSON on standard output");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(std::string(kFooter) + "\n" + atoll::ExitCodeTable());
  atoll::AddStatusCommand(app, global, action);
  atoll::AddWorkersCommand(app, global, action);
  atoll::AddWatchCommand(app, global, action);
  atoll::AddEventsCommand(app, global, action);
  atoll::AddExportCommand(app, global, action);
  atoll::AddConfigCommand(app, global, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : atoll::ToInt(atoll::ExitCode::kUsage);
  }
  const absl::Status status =
      action ? action() : absl::InvalidArgumentError("nothing to do; see atollctl --help");
  if (status.ok()) return atoll::ToInt(atoll::ExitCode::kOk);
  std::fprintf(stderr, "atollctl: %s\n", std::string(status.message()).c_str());
  return atoll::ToInt(atoll::DefaultExitCode(status));
}
