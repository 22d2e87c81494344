#include <cstdio>

#include "cli/commands/commands.h"
#include "cli/confirm.h"
#include "cli/json.h"
#include "cli/text.h"
#include "common/status.h"

namespace atoll {
namespace {

struct RunOrder {
  v1::ControlRunRequest::Action action = v1::ControlRunRequest::ACTION_UNSPECIFIED;
  std::string reason;
  bool yes = false;
};

absl::Status Control(const GlobalOptions& global, const RunOrder& order) {
  if (order.action == v1::ControlRunRequest::STOP) {
    ATOLL_RETURN_IF_ERROR(Confirm(
        "Stop the run for good? Its last version stays published, and no other one will follow.", order.yes));
  }
  v1::ControlRunRequest request;
  request.set_action(order.action);
  request.set_reason(order.reason);
  ATOLL_ASSIGN_OR_RETURN(const v1::ControlRunReply reply, MakeAdminClient(global).ControlRun(request));
  if (global.json) return PrintJson(reply);
  std::printf("%s: %s\n", StateName(reply.state()), Printable(reply.message()).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddRunCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* run =
      app.add_subcommand("run", "The run as a whole: pause it, resume it, stop it, close a round");
  run->require_subcommand(1);
  AddStatusOptions(*run->add_subcommand("status", "The same as atollctl status"), global, action);
  const auto add = [&](const char* name, const char* about, v1::ControlRunRequest::Action what) {
    auto order = std::make_shared<RunOrder>();
    order->action = what;
    CLI::App* command = run->add_subcommand(name, about);
    command->add_option("--reason", order->reason, "Why, for the event log");
    if (what == v1::ControlRunRequest::STOP) command->add_flag("--yes", order->yes, "Do not ask");
    command->callback(
        [&global, &action, order] { action = [&global, order] { return Control(global, *order); }; });
  };
  add("pause", "Workers finish their round and wait; what they push is kept", v1::ControlRunRequest::PAUSE);
  add("resume", "Go on after a pause", v1::ControlRunRequest::RESUME);
  add("stop", "For good: close the open round with what arrived, publish it, let the workers leave",
      v1::ControlRunRequest::STOP);
  add("close-round", "Close the open round now, with what arrived", v1::ControlRunRequest::CLOSE_ROUND);
}

}  // namespace atoll
