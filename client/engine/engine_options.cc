#include "client/engine/engine_options.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/did_you_mean.h"
#include "common/status.h"

namespace atl {
namespace {

void AddEngineOptions(CLI::App& app, EngineOptions& options) {
  app.allow_config_extras(false);
  AddMemberFlags(app, options.member);
  AddLogFlags(app, options.log);
  app.add_option("--device", options.device);
  app.add_option("--device-name", options.device_name);
  app.add_option("--threads", options.threads)->check(CLI::Range(0, 1 << 20));
  app.add_option("--base-fingerprint", options.base_fingerprint);
  app.add_option("--data-fingerprint", options.data_fingerprint);
}

std::vector<std::string> NamesOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

absl::Status CheckNames(const CLI::App& app, const std::vector<ipc::Option>& given) {
  const std::vector<std::string> names = NamesOf(app);
  std::set<std::string> seen;
  for (const ipc::Option& option : given) {
    if (!std::ranges::count(names, option.name)) {
      const std::string meant = DidYouMean(option.name, names);
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", option.name, "'",
                       meant.empty() ? "" : absl::StrCat("; did you mean '", meant, "'?")));
    }
    // An unset variable of the caller's script must not turn TLS or a check off.
    if (option.value.empty() && option.name != "coordinator" && option.name != "state-dir")
      return absl::InvalidArgumentError(
          absl::StrFormat("option '%s' is empty: give a value, or leave the option out", option.name));
    if (!seen.insert(option.name).second)
      return absl::InvalidArgumentError(
          absl::StrFormat("option '%s' is given twice; give it once", option.name));
  }
  return absl::OkStatus();
}

absl::Status CheckRequired(const std::vector<ipc::Option>& given, const std::string& name) {
  const auto is = [&](const ipc::Option& option) { return option.name == name && !option.value.empty(); };
  if (std::ranges::any_of(given, is)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("option '%s' is required", name));
}

}  // namespace

std::vector<std::string> EngineOptionNames() {
  EngineOptions options;
  CLI::App app;
  app.set_help_flag();
  AddEngineOptions(app, options);
  return NamesOf(app);
}

absl::StatusOr<EngineOptions> ParseEngineOptions(const std::vector<ipc::Option>& given, bool joins) {
  EngineOptions options;
  CLI::App app;
  app.set_help_flag();
  AddEngineOptions(app, options);
  ATOLL_RETURN_IF_ERROR(CheckNames(app, given));
  ATOLL_RETURN_IF_ERROR(CheckRequired(given, "coordinator"));
  if (joins) ATOLL_RETURN_IF_ERROR(CheckRequired(given, "state-dir"));
  std::vector<std::string> arguments;
  // CLI11 takes them from the end.
  for (auto option = given.rbegin(); option != given.rend(); ++option) {
    arguments.push_back(absl::StrCat("--", option->name, "=", option->value));
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    // The caller gave no command line.
    return absl::InvalidArgumentError(absl::StrCat("option ", absl::StripPrefix(error.what(), "--")));
  }
  if (!std::isfinite(options.member.drain_seconds))
    return absl::InvalidArgumentError("option drain-seconds: it is not a finite number");
  return options;
}

}  // namespace atl
