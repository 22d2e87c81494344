#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/observer_client.h"
#include "cli/output.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/standard_output.h"
#include "common/status.h"

namespace atl {
namespace {

struct EventsOptions {
  uint64_t after = 0;
  bool follow = false;
};

bool PrintEvent(const v1::RunEvent& event, bool json) {
  if (json) return PrintJson(event, /*compact=*/true).ok() && FlushStandardOutput().ok();
  std::printf("%6llu  %s  %-20s  %s\n", static_cast<unsigned long long>(event.sequence()),
              LocalTime(event.unix_nanos()).c_str(), EventKindName(event.kind()).c_str(),
              Printable(event.message()).c_str());
  return FlushStandardOutput().ok();
}

absl::Status Events(const GlobalOptions& global, const EventsOptions& options) {
  const EndWithReader end_with_reader;
  ATOLL_ASSIGN_OR_RETURN(const auto client, MakeObserver(global, "events"));
  const uint64_t newest = client->run().last_event_sequence();
  if (!options.follow && newest <= options.after) return absl::OkStatus();
  return client->Watch(options.after, [&](const v1::RunEvent& event) {
    return PrintEvent(event, global.json) && (options.follow || event.sequence() < newest);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObserverClient>> MakeObserver(const GlobalOptions& global,
                                                             const char* command) {
  ATOLL_RETURN_IF_ERROR(CheckDataPort(command, global.coordinator, global.admin));
  ATOLL_ASSIGN_OR_RETURN(SecurityPtr security, global.security());
  return ObserverClient::Join(global.coordinator.address, Seconds(global.timeout_s), std::move(security),
                              WaitNoticeFor(global));
}

void AddEventsCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = app.add_subcommand(
      "events", "List the run's events in order: members, rounds, checkpoints, admin actions");
  auto options = std::make_shared<EventsOptions>();
  command->add_option("--after", options->after, "Show only events after this sequence number")
      ->check(NotNegative())
      ->capture_default_str();
  command->add_flag("--follow", options->follow, "Keep running and print new events as they happen");
  command->callback(
      [&global, &action, options] { action = [&global, options] { return Events(global, *options); }; });
  SetHelp(*command,
          {.examples = {{"atollctl events --after 120"},
                        {"atollctl events --follow --json | jq -c 'select(.kind == \"ADMIN_ACTION\")'",
                         "Only changes by operators"}},
           .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected}});
}

}  // namespace atl
