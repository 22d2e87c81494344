#include "cli/commands/commands.h"
#include "cli/dashboard.h"
#include "cli/json.h"
#include "cli/round_history.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr char kAbout[] = "Show the run: progress, losses, traffic, and which workers the round waits for";

struct StatusOptions {
  bool summary = false;
  uint32_t history = 100;
  bool list = false;
};

absl::Status ShowStatus(const GlobalOptions& global, const StatusOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, MakeAdminClient(global).GetStatus(options.history));
  if (global.json) return PrintJson(status);
  const DashboardStyle style = InspectTerminal().style;
  PrintLines(options.summary ? RenderSummary(status, style) : RenderStatus(status, style));
  PrintLines({IdentityLine(status, global.admin.address)});
  if (options.list) PrintLines(RenderHistory(status, options.history));
  return absl::OkStatus();
}

}  // namespace

void AddStatusOptions(CLI::App& command, const GlobalOptions& global, Action& action) {
  auto options = std::make_shared<StatusOptions>();
  command.add_flag("--summary", options->summary, "Show the results of the run instead of its progress");
  const CLI::Option* history =
      command
          .add_option("--history", options->history, "List the last UINT rounds; with --json, include them")
          ->capture_default_str();
  command.callback([&global, &action, options, history] {
    options->list = history->count() > 0;
    action = [&global, options] { return ShowStatus(global, *options); };
  });
  const bool alias = command.get_parent()->get_name() == "run";
  SetHelp(command,
          {.examples = {{alias ? "atollctl run status" : "atollctl status"},
                        {"atollctl status --summary", "After the run: losses, perplexities, traffic"},
                        {"atollctl status --history 20", "With a table of the last 20 rounds"},
                        {"atollctl status --json | jq .committed_tokens"}},
           .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected}});
}

void AddStatusCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  AddStatusOptions(*app.add_subcommand("status", kAbout), global, action);
}

}  // namespace atl
