#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

std::vector<std::string> Row(const v1::LaunchedWorker& worker) {
  const std::string state = worker.next_start_in_s() > 0
                                ? absl::StrFormat("%s %s", worker.state(),
                                                  HumanDuration(Seconds(std::ceil(worker.next_start_in_s()))))
                                : worker.state();
  return {worker.name(), state, worker.handle(), absl::StrFormat("%d", worker.restarts()),
          worker.last_exit().empty() ? "-" : worker.last_exit()};
}

absl::Status Launcher(const GlobalOptions& global) {
  ATOLL_ASSIGN_OR_RETURN(const v1::LauncherStatus launcher, MakeAdminClient(global).GetLauncher());
  if (global.json) return PrintJson(launcher);
  if (launcher.kind().empty() || launcher.kind() == "none") {
    std::printf("no launcher: start workers by hand, or see --launcher in 'atoll-coordinator --help'\n");
    return absl::OkStatus();
  }
  const auto leaving = std::ranges::count_if(launcher.workers(), [](const v1::LaunchedWorker& worker) {
    return worker.state() == "draining" || worker.state() == "stopping";
  });
  std::printf("%s launcher, %s wanted, %u running%s\n", Printable(launcher.kind()).c_str(),
              Counted(launcher.target(), "worker").c_str(), launcher.running(),
              leaving > 0 ? absl::StrFormat(" (%d of them leaving)", leaving).c_str() : "");
  if (launcher.drained_size() > 0) {
    std::printf("drained: %s ('atollctl workers restart NAME' starts one again)\n",
                Printable(absl::StrJoin(launcher.drained(), ", ")).c_str());
  }
  if (!launcher.error().empty()) std::printf("error: %s\n", Printable(launcher.error()).c_str());
  std::vector<std::vector<std::string>> rows;
  for (const v1::LaunchedWorker& worker : launcher.workers()) rows.push_back(Row(worker));
  PrintLines(
      RenderTable({{"worker"}, {"state"}, {"handle"}, {"restarts", Align::kRight}, {"last exit"}}, rows));
  return absl::OkStatus();
}

}  // namespace

void AddLauncherCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = app.add_subcommand("launcher", "Show the launcher and the workers that it started");
  command->callback([&global, &action] { action = [&global] { return Launcher(global); }; });
  SetHelp(*command,
          {.examples = {{"atollctl launcher"}}, .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected}});
}

}  // namespace atl
