#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/confirm.h"
#include "cli/json.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

struct ControlRunOptions {
  v1::ControlRunRequest::Action action = v1::ControlRunRequest::ACTION_UNSPECIFIED;
  std::string reason;
  bool yes = false;
};

absl::Status Control(const GlobalOptions& global, const ControlRunOptions& control) {
  if (control.action == v1::ControlRunRequest::STOP) {
    ATOLL_RETURN_IF_ERROR(
        Confirm("Stop the run permanently? Its last version stays published; no other version follows.",
                control.yes));
  }
  v1::ControlRunRequest request;
  request.set_action(control.action);
  request.set_reason(control.reason);
  ATOLL_ASSIGN_OR_RETURN(const v1::ControlRunReply reply, MakeAdminClient(global).ControlRun(request));
  if (global.json) return PrintJson(reply);
  std::printf("%s: %s\n", StateName(reply.state()), Printable(reply.message()).c_str());
  return absl::OkStatus();
}

struct Extension {
  uint32_t rounds = 0;
  bool dry_run = false;
  bool yes = false;
};

std::string RateText(const v1::ExtendRunReply& reply) {
  const double before = reply.learning_rate_before(), after = reply.learning_rate_after();
  const double end = reply.final_learning_rate();
  const std::string now = absl::StrFormat("%.6g", before), then = absl::StrFormat("%.6g", after);
  const std::string last = absl::StrFormat("%.6g", end);
  std::string text = "learning rate    ";
  if (now == then) {
    text += then == last ? now + " from now to the end," : now + ", which the extension does not change;";
  } else {
    text += absl::StrFormat("%s now, %s after the extension%s", now, then,
                            then == last ? " and to the end," : ";");
  }
  if (then != last) text += absl::StrFormat(" it decays to %s", last);
  return text + absl::StrFormat(" at step %d", reply.total_steps_after());
}

std::vector<std::string> ExtensionLines(const v1::ExtendRunReply& reply) {
  const double after = reply.learning_rate_after();
  std::vector<std::string> lines = {
      absl::StrFormat("rounds           %d -> %d (%d -> %d inner steps; the run is at step %.0f)",
                      reply.rounds_before(), reply.rounds_after(), reply.total_steps_before(),
                      reply.total_steps_after(), reply.position_steps()),
      "                 the run ends when the tokens of these rounds are trained; with fewer workers than "
      "run.workers it takes more rounds",
      RateText(reply)};
  if (reply.reopened()) {
    lines.emplace_back(
        "the finished run resumes and a launcher restarts its workers. Other workers have exited: start them "
        "again");
  }
  if (after <= 0) {
    lines.emplace_back(
        "the learning rate stays 0, so the model would not learn: set inner.min_learning_rate_ratio first");
  }
  return lines;
}

absl::Status Extend(const GlobalOptions& global, const Extension& extension) {
  AdminClient client = MakeAdminClient(global);
  v1::ExtendRunRequest request;
  request.set_rounds(extension.rounds);
  request.set_dry_run(true);
  ATOLL_ASSIGN_OR_RETURN(v1::ExtendRunReply reply, client.ExtendRun(request));
  if (!global.json) PrintLines(ExtensionLines(reply));
  if (!extension.dry_run) {
    const std::string question = absl::StrFormat("Extend the run by %s?", Counted(extension.rounds, "round"));
    ATOLL_RETURN_IF_ERROR(Confirm(question, extension.yes));
    request.set_dry_run(false);
    request.set_expected_version(reply.config_version());
    ATOLL_ASSIGN_OR_RETURN(reply, client.ExtendRun(request));
    if (!global.json) {
      std::printf("extended: configuration version %s is in force from the next round\n",
                  std::to_string(reply.config_version()).c_str());
    }
  }
  return global.json ? PrintJson(reply) : absl::OkStatus();
}

void AddExtend(CLI::App& run, const GlobalOptions& global, Action& action) {
  auto extension = std::make_shared<Extension>();
  CLI::App* command = run.add_subcommand(
      "extend",
      "Add rounds to the run, also to a finished run. Show the effect on the learning rate and ask first");
  command
      ->add_option("ROUNDS", extension->rounds, "Number of rounds to add, at the planned number of workers")
      ->required()
      ->check(CLI::Range(1, 100000000));
  command->add_flag("--dry-run", extension->dry_run, "Show the effect without extending the run");
  command->add_flag("--yes", extension->yes, "Do not ask for confirmation");
  command->callback([&global, &action, extension] {
    action = [&global, extension] { return Extend(global, *extension); };
  });
  SetHelp(*command, {.examples = {{"atollctl run extend 100 --dry-run"}, {"atollctl run extend 100 --yes"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected, ExitCode::kInterrupted}});
}

}  // namespace

void AddRunCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* run = app.add_subcommand("run", "Pause, resume, stop or extend the run, or close its open round");
  run->require_subcommand(1);
  AddStatusOptions(*run->add_subcommand("status", "Show the run; an alias of 'atollctl status'"), global,
                   action);
  const auto add = [&](const char* name, const char* about, v1::ControlRunRequest::Action what,
                       const HelpExample& example) {
    auto control = std::make_shared<ControlRunOptions>();
    control->action = what;
    CLI::App* command = run->add_subcommand(name, about);
    command->add_option("--reason", control->reason, "Reason, recorded in the event log");
    if (what == v1::ControlRunRequest::STOP)
      command->add_flag("--yes", control->yes, "Do not ask for confirmation");
    command->callback(
        [&global, &action, control] { action = [&global, control] { return Control(global, *control); }; });
    std::vector<ExitCode> codes = {ExitCode::kUnavailable, ExitCode::kRejected};
    if (what == v1::ControlRunRequest::STOP) codes.push_back(ExitCode::kInterrupted);
    SetHelp(*command, {.examples = {example}, .exit_codes = codes});
  };
  add("pause", "Pause the run: workers stop after the inner step in progress and wait",
      v1::ControlRunRequest::PAUSE, {"atollctl run pause --reason \"power cut at noon\""});
  add("resume", "Resume a paused run", v1::ControlRunRequest::RESUME, {"atollctl run resume"});
  add("stop",
      "Stop the run permanently: close the open round with the contributions received, publish it, and let "
      "the workers leave",
      v1::ControlRunRequest::STOP, {"atollctl run stop --yes", "Without --yes the command asks first"});
  add("close-round", "Close the open round now with the contributions received",
      v1::ControlRunRequest::CLOSE_ROUND, {"atollctl run close-round --reason \"w3 is gone\""});
  AddExtend(*run, global, action);
  add("reset-data",
      "Forget which token files the run uses. The files of the next accepted contribution become those of "
      "the run",
      v1::ControlRunRequest::RESET_DATASET, {"atollctl run reset-data --reason \"new text\""});
  SetHelp(*run, {.examples = {{"atollctl run pause --reason \"power cut at noon\""}, {"atollctl run resume"}},
                 .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected, ExitCode::kInterrupted}});
}

}  // namespace atl
