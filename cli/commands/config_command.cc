#include <cstdio>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/config_advice.h"
#include "cli/json.h"
#include "common/human.h"
#include "common/status.h"
#include "protos/config/explain.h"
#include "protos/config/run_config.h"

namespace atoll {
namespace {

absl::Status Validate(const GlobalOptions& global, const std::string& file) {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(file));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ToRunOptions(config));
  if (global.json) return PrintJson(config);
  std::printf("%s is valid: run '%s', %u workers, %u rounds of %u inner steps, %s tokens in all\n",
              file.c_str(), run.name.c_str(), run.workers, run.rounds, run.inner.steps,
              HumanCount(static_cast<double>(run.total_tokens())).c_str());
  for (const std::string& advice : ConfigAdvice(run)) std::printf("warning: %s\n", advice.c_str());
  return absl::OkStatus();
}

absl::Status Show(const GlobalOptions& global, const std::string& file) {
  v1::RunConfig config;
  if (file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, MakeAdminClient(global).GetStatus(0));
    config = status.config();
  } else {
    ATOLL_ASSIGN_OR_RETURN(config, LoadRunConfig(file));
  }
  if (global.json) return PrintJson(config);
  std::printf("%s", FormatRunConfigYaml(config).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddConfigCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* config = app.add_subcommand("config", "A run's configuration: check it, explain it, change it");
  config->require_subcommand(1);
  auto file = std::make_shared<std::string>();

  CLI::App* validate =
      config->add_subcommand("validate", "Say everything that is wrong with a file, or that it is valid");
  validate->add_option("FILE", *file, "The run's YAML file")->required();
  validate->callback(
      [&global, &action, file] { action = [&global, file] { return Validate(global, *file); }; });

  CLI::App* show =
      config->add_subcommand("show", "Print a configuration with every field, defaults filled in");
  show->add_option("FILE", *file, "The run's YAML file; without it: what the run is doing now");
  show->callback([&global, &action, file] { action = [&global, file] { return Show(global, *file); }; });

  CLI::App* explain =
      config->add_subcommand("explain", "Every field with its meaning, default and allowed range");
  auto markdown = std::make_shared<bool>(false);
  explain->add_flag("--markdown", *markdown, "As the tables of docs/configuration.md");
  explain->callback([&action, markdown] {
    action = [markdown] {
      std::printf("%s", (*markdown ? ExplainRunConfigMarkdown() : ExplainRunConfig()).c_str());
      return absl::OkStatus();
    };
  });
  AddConfigSetCommand(*config, global, action);
  AddConfigHistoryCommand(*config, global, action);
}

}  // namespace atoll
