#include <cstdio>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/status.h"

namespace atl {
namespace {

struct SetOptions {
  std::vector<std::string> settings;
  bool dry_run = false;
  uint64_t expect = 0;
};

absl::StatusOr<v1::SetConfigRequest> ToRequest(const SetOptions& options) {
  v1::SetConfigRequest request;
  request.set_dry_run(options.dry_run);
  request.set_expected_version(options.expect);
  for (const std::string& text : options.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "'%s' is not a setting: expected PATH=VALUE, for example round.deadline_s=120", text));
    }
    v1::Setting* setting = request.add_settings();
    setting->set_path(text.substr(0, equals));
    setting->set_value(text.substr(equals + 1));
  }
  return request;
}

void PrintChanges(const v1::RecordedConfig& config) {
  for (const std::string& change : config.changes()) std::printf("   %s\n", Printable(change).c_str());
}

absl::Status Set(const GlobalOptions& global, const SetOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const v1::SetConfigRequest request, ToRequest(options));
  ATOLL_ASSIGN_OR_RETURN(const v1::SetConfigReply reply, MakeAdminClient(global).SetConfig(request));
  if (global.json) return PrintJson(reply);
  const auto version = static_cast<unsigned long long>(reply.config().version());
  if (reply.config().changes().empty()) {
    std::printf("nothing to change: configuration %llu has these values\n", version);
    return absl::OkStatus();
  }
  if (options.dry_run) {
    std::printf("valid; nothing was changed. It would become configuration %llu:\n", version);
  } else {
    std::printf("configuration %llu, in force from the next round:\n", version);
  }
  PrintChanges(reply.config());
  return absl::OkStatus();
}

absl::Status History(const GlobalOptions& global, bool diff) {
  ATOLL_ASSIGN_OR_RETURN(const v1::ListConfigsReply reply, MakeAdminClient(global).ListConfigs());
  if (global.json) return PrintJson(reply);
  if (!diff) {
    std::vector<std::vector<std::string>> rows;
    for (const v1::RecordedConfig& config : reply.configs()) {
      rows.push_back({absl::StrFormat("%d", config.version()), LocalTime(config.unix_nanos()),
                      config.author(), absl::StrFormat("%d", config.changes_size())});
    }
    PrintLines(
        RenderTable({{"version", Align::kRight}, {"recorded"}, {"by"}, {"changes", Align::kRight}}, rows));
    return absl::OkStatus();
  }
  for (const v1::RecordedConfig& config : reply.configs()) {
    std::printf("%llu  %s  %s\n", static_cast<unsigned long long>(config.version()),
                LocalTime(config.unix_nanos()).c_str(), Printable(config.author()).c_str());
    PrintChanges(config);
  }
  return absl::OkStatus();
}

}  // namespace

void AddConfigSetCommand(CLI::App& config, const GlobalOptions& global, Action& action) {
  CLI::App* set =
      config.add_subcommand("set", "Change the configuration of the live run from the next round on");
  auto options = std::make_shared<SetOptions>();
  set->add_option("SETTING", options->settings, "PATH=VALUE, with paths as in the YAML file")->required();
  set->add_flag("--dry-run", options->dry_run, "Check the change without making it");
  set->add_option("--expect", options->expect,
                  "Fail when the active configuration has another version than this")
      ->check(NotNegative())
      ->check(CLI::Range(uint64_t{1}, UINT64_MAX).description("1 or more"));
  set->callback(
      [&global, &action, options] { action = [&global, options] { return Set(global, *options); }; });
  SetHelp(*set, {.examples = {{"atollctl config set round.deadline_s=120 outer.learning_rate=0.5"},
                              {"atollctl config set --dry-run codec.push=int8"},
                              {"atollctl config set --expect 3 round.quorum=0.75",
                               "Only if nobody changed it since version 3"}},
                 .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected}});
}

void AddConfigHistoryCommand(CLI::App& config, const GlobalOptions& global, Action& action) {
  CLI::App* history =
      config.add_subcommand("history", "List every configuration of the run: version, time, author");
  auto diff = std::make_shared<bool>(false);
  history->add_flag("--diff", *diff, "Show what each version changed");
  history->callback(
      [&global, &action, diff] { action = [&global, diff] { return History(global, *diff); }; });
  SetHelp(*history, {.examples = {{"atollctl config history --diff"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected}});
}

}  // namespace atl
