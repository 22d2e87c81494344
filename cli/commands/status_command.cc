#include "cli/commands/commands.h"
#include "cli/dashboard.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "common/status.h"

namespace atoll {
namespace {

constexpr char kAbout[] = "The run at a glance: progress, losses, traffic, what is waited for";

struct StatusOptions {
  bool summary = false;
  uint32_t history = 100;
};

absl::Status ShowStatus(const GlobalOptions& global, const StatusOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, MakeAdminClient(global).GetStatus(options.history));
  if (global.json) return PrintJson(status);
  const DashboardStyle style = InspectTerminal().style;
  PrintLines(options.summary ? RenderSummary(status, style) : RenderStatus(status, style));
  return absl::OkStatus();
}

}  // namespace

void AddStatusOptions(CLI::App& command, const GlobalOptions& global, Action& action) {
  auto options = std::make_shared<StatusOptions>();
  command.add_flag("--summary", options->summary, "What the run came to, instead of where it stands");
  command.add_option("--history", options->history, "With --json: how many of the latest rounds to include")
      ->capture_default_str();
  command.callback(
      [&global, &action, options] { action = [&global, options] { return ShowStatus(global, *options); }; });
}

void AddStatusCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  AddStatusOptions(*app.add_subcommand("status", kAbout), global, action);
}

}  // namespace atoll
