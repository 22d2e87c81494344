#include <cstdio>

#include "cli/commands/commands.h"
#include "cli/dashboard.h"
#include "cli/json.h"
#include "cli/rpc_client.h"
#include "cli/terminal.h"
#include "common/status.h"

namespace atoll {
namespace {

void PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

struct StatusOptions {
  bool summary = false;
  uint32_t history = 100;
};

absl::Status ShowStatus(const GlobalOptions& global, const StatusOptions& options) {
  AdminClient client(global.admin, Seconds(global.timeout_s));
  ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, client.GetStatus(options.history));
  if (global.json) return PrintJson(status);
  const DashboardStyle style = InspectTerminal().style;
  PrintLines(options.summary ? RenderSummary(status, style) : RenderStatus(status, style));
  return absl::OkStatus();
}

absl::Status ShowWorkers(const GlobalOptions& global, bool all) {
  AdminClient client(global.admin, Seconds(global.timeout_s));
  ATOLL_ASSIGN_OR_RETURN(const v1::ListWorkersReply workers, client.ListWorkers(all));
  if (global.json) return PrintJson(workers);
  PrintLines(RenderWorkers(workers, InspectTerminal().style));
  return absl::OkStatus();
}

}  // namespace

void AddStatusCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command =
      app.add_subcommand("status", "The run at a glance: progress, losses, traffic, what is waited for");
  auto options = std::make_shared<StatusOptions>();
  command->add_flag("--summary", options->summary, "What the run came to, instead of where it stands");
  command->add_option("--history", options->history, "With --json: how many of the latest rounds to include")
      ->capture_default_str();
  command->callback(
      [&global, &action, options] { action = [&global, options] { return ShowStatus(global, *options); }; });
}

void AddWorkersCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* workers =
      app.add_subcommand("workers", "The workers: who is connected, doing what, with what lease left");
  workers->require_subcommand(0, 1);
  auto all = std::make_shared<bool>(false);
  CLI::App* list = workers->add_subcommand("list", "One line per worker (the default)");
  list->add_flag("--all", *all, "Also those that left or were lost");
  workers->callback(
      [&global, &action, all] { action = [&global, all] { return ShowWorkers(global, *all); }; });
}

}  // namespace atoll
