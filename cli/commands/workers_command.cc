#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/dashboard.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/worker_view.h"
#include "common/command_line/help.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

using ControlRequest = v1::ControlWorkerRequest;

absl::Status List(const GlobalOptions& global, bool all) {
  AdminClient client = MakeAdminClient(global);
  ATOLL_ASSIGN_OR_RETURN(const v1::ListWorkersReply workers, client.ListWorkers(all));
  if (global.json) return PrintJson(workers);
  if (workers.workers_size() == 0) {
    std::printf("%s\n",
                all ? "no worker has joined the run"
                    : "no worker is in the run; 'atollctl workers list --all' shows departed workers");
  } else {
    PrintLines(RenderWorkers(workers, InspectTerminal().style));
    PrintLines({" up, down: since the coordinator's start"});
  }
  // Workers that fail before they join are in no row, so show the launcher's error.
  const absl::StatusOr<v1::LauncherStatus> launcher = client.GetLauncher();
  if (launcher.ok() && !launcher->error().empty()) {
    PrintLines({" launcher: " + Printable(launcher->error()) + "; 'atollctl launcher' shows its workers"});
  }
  return absl::OkStatus();
}

absl::Status Describe(const GlobalOptions& global, const std::string& name) {
  ATOLL_ASSIGN_OR_RETURN(const v1::ListWorkersReply reply, MakeAdminClient(global).ListWorkers(true, name));
  // An older coordinator ignores the name and returns all workers.
  for (const v1::WorkerStatus& worker : reply.workers()) {
    if (worker.name() != name) continue;
    if (global.json) return PrintJson(worker);
    PrintLines(DescribeWorker(worker));
    return absl::OkStatus();
  }
  return FromCoordinator(absl::NotFoundError(
      absl::StrFormat("no worker '%s'; 'atollctl workers list --all' lists all workers", name)));
}

absl::Status Control(const GlobalOptions& global, const ControlRequest& request) {
  ATOLL_ASSIGN_OR_RETURN(const v1::ControlWorkerReply reply, MakeAdminClient(global).ControlWorker(request));
  if (global.json) return PrintJson(reply);
  const std::string prefix = request.worker().empty() ? "" : request.worker() + ": ";
  std::printf("%s%s\n", prefix.c_str(), Printable(reply.message()).c_str());
  return absl::OkStatus();
}

/// A run begins when run.workers have joined; it waits some minutes for the last ones. A restarted run or a
/// branch is also STARTING, until the first worker joins, but waits for no number of workers.
void SayIfTheStartWaits(AdminClient& client, uint32_t target) {
  const absl::StatusOr<v1::GetStatusReply> status = client.GetStatus(0);
  if (!status.ok() || status->state() != v1::RUN_STATE_STARTING) return;
  const uint32_t planned = status->config().run().workers();
  const bool begun = std::ranges::any_of(
      status->fragments(), [](const v1::FragmentStatus& fragment) { return fragment.version() > 0; });
  if (begun || target >= planned) return;
  std::printf(
      "the run has not begun: its start waits for %s (run.workers), and 'atollctl status' shows how long; "
      "give "
      "'atollctl workers scale %u', or start the others yourself\n",
      Counted(planned, "worker").c_str(), planned);
}

absl::Status Scale(const GlobalOptions& global, const v1::ScaleWorkersRequest& request) {
  AdminClient client = MakeAdminClient(global);
  ATOLL_ASSIGN_OR_RETURN(const v1::ScaleWorkersReply reply, client.ScaleWorkers(request));
  if (global.json) return PrintJson(reply);
  std::printf("from %u to %s: %s\n", reply.before(), Counted(reply.target(), "worker").c_str(),
              Printable(absl::StrJoin(reply.names(), ", ")).c_str());
  SayIfTheStartWaits(client, reply.target());
  return absl::OkStatus();
}

void AddControl(CLI::App& workers, const GlobalOptions& global, Action& action, const char* name,
                const char* about, ControlRequest::Action what) {
  struct Options {
    ControlRequest request;
    std::string worker, reason;
    bool at_once = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = workers.add_subcommand(name, about);
  command->add_option("NAME", options->worker, "Name of the worker")->required();
  command->add_option("--reason", options->reason, "Reason, recorded in the event log");
  if (what == ControlRequest::DRAIN || what == ControlRequest::RESTART) {
    command->add_flag("--at-once", options->at_once, "Do not finish the round; push the steps done so far");
  }
  command->callback([&global, &action, options, what] {
    options->request.set_worker(options->worker);
    options->request.set_action(what);
    options->request.set_at_once(options->at_once);
    options->request.set_reason(options->reason);
    action = [&global, options] { return Control(global, options->request); };
  });
  SetHelp(*command,
          {.examples = {{absl::StrFormat("atollctl workers %s w3 --reason \"moving the machine\"", name)}},
           .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected}});
}

void AddForget(CLI::App& workers, const GlobalOptions& global, Action& action) {
  struct Options {
    std::string worker, age, reason;
  };
  auto options = std::make_shared<Options>();
  CLI::App* forget = workers.add_subcommand(
      "forget", "Forget departed workers; the next worker that joins under such a name is a new worker");
  CLI::Option* const name = forget->add_option("NAME", options->worker, "Name of the worker");
  CLI::Option* const age = forget->add_option(
      "--older-than", options->age, "Forget all workers that left longer ago than this: 30min, 12h, 7d");
  name->excludes(age);
  forget->add_option("--reason", options->reason, "Reason, recorded in the event log");
  forget->callback([&global, &action, options] {
    if (options->worker.empty() == options->age.empty()) {
      throw CLI::ValidationError("forget", "give a NAME or --older-than");
    }
    action = [&global, options]() -> absl::Status {
      ControlRequest request;
      request.set_action(ControlRequest::FORGET);
      request.set_worker(options->worker);
      request.set_reason(options->reason);
      if (!options->age.empty()) {
        ATOLL_ASSIGN_OR_RETURN(const double seconds, ParseSpan(options->age, "7d or 12h"));
        request.set_older_than_s(seconds);
      }
      return Control(global, request);
    };
  });
  SetHelp(*forget, {.examples = {{"atollctl workers forget --older-than 7d"}},
                    .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected}});
}

void AddSizes(CLI::App& workers, const GlobalOptions& global, Action& action) {
  auto count = std::make_shared<uint32_t>(0);
  CLI::App* add = workers.add_subcommand("add", "Start more workers; needs a launcher");
  add->add_option("N", *count, "Number of workers to add")->required()->check(CLI::Range(1, 10000));
  add->callback([&global, &action, count] {
    v1::ScaleWorkersRequest request;
    request.set_add(*count);
    action = [&global, request] { return Scale(global, request); };
  });
  CLI::App* scale = workers.add_subcommand(
      "scale", "Set the number of workers; workers that are not members go first, then the highest numbers");
  scale->add_option("N", *count, "Number of workers in all")->required()->check(CLI::Range(0, 10000));
  scale->callback([&global, &action, count] {
    v1::ScaleWorkersRequest request;
    request.set_target(*count);
    action = [&global, request] { return Scale(global, request); };
  });
  const std::vector<ExitCode> codes = {ExitCode::kUnavailable, ExitCode::kRejected};
  SetHelp(*add, {.examples = {{"atollctl workers add 2"}}, .exit_codes = codes});
  SetHelp(*scale, {.examples = {{"atollctl workers scale 6"}}, .exit_codes = codes});
}

}  // namespace

void AddWorkersCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* workers = app.add_subcommand("workers", "List, drain, restart, add and remove workers");
  workers->require_subcommand(0, 1);
  auto all = std::make_shared<bool>(false);
  auto name = std::make_shared<std::string>();
  const auto list_action = [&global, &action, all] {
    action = [&global, all] { return List(global, *all); };
  };
  CLI::App* list = workers->add_subcommand("list", "List the workers, one line each (the default)");
  list->add_flag("--all", *all, "Include workers that left or were lost");
  list->callback(list_action);
  CLI::App* describe = workers->add_subcommand("describe", "Show details of one worker");
  describe->add_option("NAME", *name, "Name of the worker")->required();
  describe->callback(
      [&global, &action, name] { action = [&global, name] { return Describe(global, *name); }; });
  AddControl(*workers, global, action, "drain", "Let the worker finish its round, push it, and leave",
             ControlRequest::DRAIN);
  AddControl(*workers, global, action, "restart", "Drain the worker, then start it again under the same name",
             ControlRequest::RESTART);
  AddControl(*workers, global, action, "evict", "Remove the worker at once; its process may join again",
             ControlRequest::EVICT);
  AddControl(*workers, global, action, "ban", "Evict the worker and reject its name until it is unbanned",
             ControlRequest::BAN);
  AddControl(*workers, global, action, "unban", "Allow a banned name to join again", ControlRequest::UNBAN);
  AddControl(*workers, global, action, "resync",
             "Discard the worker's local progress and let it pull the published version",
             ControlRequest::RESYNC);
  AddForget(*workers, global, action);
  AddSizes(*workers, global, action);
  const std::vector<ExitCode> codes = {ExitCode::kUnavailable, ExitCode::kRejected};
  SetHelp(*list, {.examples = {{"atollctl workers list --all"}}, .exit_codes = codes});
  SetHelp(*describe, {.examples = {{"atollctl workers describe w3"}}, .exit_codes = codes});
  SetHelp(*workers, {.examples = {{"atollctl workers"}, {"atollctl workers drain w3 --reason \"moving\""}},
                     .exit_codes = codes,
                     .notes = "A command reaches the worker with its next heartbeat; until then 'atollctl "
                              "workers' shows it as pending. Up and down are bytes since the coordinator's "
                              "start; 'atollctl status' shows the run's."});
  // CLI11 calls this callback after the callback of the chosen subcommand.
  workers->callback([workers, list_action] {
    if (workers->get_subcommands().empty()) list_action();
  });
}

}  // namespace atl
