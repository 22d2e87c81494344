#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/commands/config_file.h"
#include "cli/config_advice.h"
#include "cli/json.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/human.h"
#include "common/status.h"
#include "core/model_check.h"
#include "protos/config/explain.h"
#include "protos/config/run_config.h"

namespace atl {
namespace {

constexpr double kAskSeconds = 2;
constexpr char kStrictIsBetter[] =
    "workers that you do not know can join, and offenders.ban_after is 0: with 2 hostile workers of 8, the "
    "loss rises by more than 5 % under every merge. Set `offenders: strict` (docs/reference/byzantine.md)";

/// Whether unknown workers can join: a token for any name is active.
absl::StatusOr<bool> LetsStrangersIn(const GlobalOptions& global) {
  ATOLL_ASSIGN_OR_RETURN(const v1::ListTokensReply tokens, MakeAdminClient(global).ListTokens());
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  return std::ranges::any_of(tokens.tokens(), [now](const v1::TokenInfo& token) {
    const bool in_force = token.revoked_unix_nanos() == 0 &&
                          (token.expires_unix_nanos() == 0 || token.expires_unix_nanos() > now);
    return in_force && token.role() == "worker" && token.name().empty();
  });
}

/// Prints a recommendation for a configuration that is valid but risky. Asks the coordinator given by
/// --admin, if any, whether strangers can join. An unreachable coordinator is not an error, because a file is
/// often checked before its coordinator runs. ATOLL_ADMIN is ignored: it is set for other commands, perhaps
/// for another run.
void Recommend(const GlobalOptions& global, const RunOptions& run, bool strangers) {
  if (run.offenders.ban_after > 0) return;
  if (!strangers && global.admin.on_command_line()) {
    GlobalOptions brief = global;
    brief.timeout_s = std::min(global.timeout_s, kAskSeconds);
    const absl::StatusOr<bool> asked = LetsStrangersIn(brief);
    if (!asked.ok()) {
      std::fprintf(stderr, "note: whether unknown workers can join this run was not checked: %s\n",
                   std::string(asked.status().message()).c_str());
    }
    strangers = asked.value_or(false);
  }
  if (strangers) std::fprintf(stderr, "recommendation: %s\n", kStrictIsBetter);
}

void PrintAdvice(std::FILE* to, const std::vector<std::string>& advice) {
  for (const std::string& text : advice) std::fprintf(to, "warning: %s\n", text.c_str());
}

/// Says where the tensors come from if the configuration does not describe them.
void PrintModelSource(const RunOptions& run) {
  const ExternalOptions* const external = run.model.external();
  if (external == nullptr) return;
  if (external->script.empty()) {
    std::printf("the model is external: the first worker that joins brings its tensors\n");
  } else {
    std::printf("the model is the TorchScript file %s: the first worker that joins brings its tensors\n",
                external->script.c_str());
  }
}

/// Prints all that can be said of the file at once, also if it has problems.
absl::Status Validate(const GlobalOptions& global, const std::string& file, bool strangers) {
  const RunConfigReading reading = TryConfigFile(file);
  const v1::RunConfig& config = reading.file.config;
  if (!reading.status.ok()) {
    PrintAdvice(stderr, TokenizerAdvice(config.data().tokenizer()));
    return reading.status;
  }
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ToRunOptions(config));
  if (const absl::Status fits = CheckModel(run); !fits.ok()) {
    PrintAdvice(stderr, ConfigAdvice(run));
    return fits;
  }
  Recommend(global, run, strangers);
  if (global.json) return PrintJson(config);
  std::printf("%s is valid: run '%s', %s, %s of %s, %s tokens in all\n", file.c_str(), run.name.c_str(),
              Counted(run.workers, "worker").c_str(), Counted(run.rounds, "round").c_str(),
              Counted(run.inner.steps, "inner step").c_str(),
              HumanCount(static_cast<double>(run.total_tokens())).c_str());
  PrintModelSource(run);
  PrintAdvice(stdout, ConfigAdvice(run));
  return absl::OkStatus();
}

absl::Status Show(const GlobalOptions& global, const std::string& file) {
  v1::RunConfig config;
  if (file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, MakeAdminClient(global).GetStatus(0));
    config = status.config();
  } else {
    ATOLL_ASSIGN_OR_RETURN(config, LoadConfigFile(file));
  }
  if (global.json) return PrintJson(config);
  std::printf("%s", FormatRunConfigYaml(config).c_str());
  return absl::OkStatus();
}

absl::Status Explain(const std::string& path, bool markdown) {
  const std::string text = markdown ? ExplainRunConfigMarkdown() : ExplainRunConfig(path);
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s' is no section and no field of a configuration; 'atollctl config explain' lists all", path));
  }
  std::printf("%s", text.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddConfigCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* config = app.add_subcommand("config", "Check, show, explain or change a run's configuration");
  config->require_subcommand(1);
  auto file = std::make_shared<std::string>();

  CLI::App* validate =
      config->add_subcommand("validate", "Check a configuration file and list every problem in it");
  validate->add_option("FILE", *file, "Configuration file of the run (YAML)")->required();
  auto strangers = std::make_shared<bool>(false);
  validate->add_flag(
      "--strangers", *strangers,
      "Check for a run that unknown workers join (tokens for any name); with --admin the command asks the "
      "coordinator whether such a token is active");
  validate->callback([&global, &action, file, strangers] {
    action = [&global, file, strangers] { return Validate(global, *file, *strangers); };
  });
  SetHelp(*validate,
          {.examples = {{"atollctl config validate run.yaml"}},
           .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected, ExitCode::kBadFiles},
           .notes = "A rule between fields is left out if it depends on a field that has no valid value."});

  CLI::App* show =
      config->add_subcommand("show", "Print a configuration with every field, defaults included");
  show->add_option("FILE", *file, "Configuration file (YAML); default: the configuration of the live run");
  show->callback([&global, &action, file] { action = [&global, file] { return Show(global, *file); }; });
  SetHelp(*show, {.examples = {{"atollctl config show > now.yaml"}, {"atollctl config show run.yaml"}},
                  .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected, ExitCode::kBadFiles}});

  CLI::App* explain =
      config->add_subcommand("explain", "List every field with its meaning, default and range");
  auto markdown = std::make_shared<bool>(false);
  CLI::Option* const in_markdown = explain->add_flag(
      "--markdown", *markdown, "Print Markdown tables, as in docs/reference/configuration.md");
  auto path = std::make_shared<std::string>();
  explain->add_option("PATH", *path, "Section or field, such as round or round.quorum; default: all")
      ->check(NotEmpty())
      ->excludes(in_markdown);
  explain->callback(
      [&action, markdown, path] { action = [markdown, path] { return Explain(*path, *markdown); }; });
  SetHelp(*explain,
          {.examples = {{"atollctl config explain | less"}, {"atollctl config explain round.quorum"}}});
  AddConfigSetCommand(*config, global, action);
  AddConfigHistoryCommand(*config, global, action);
  SetHelp(*config,
          {.examples = {{"atollctl config validate run.yaml"}, {"atollctl config set round.deadline_s=120"}},
           .exit_codes = {ExitCode::kUnavailable, ExitCode::kRejected, ExitCode::kBadFiles}});
}

}  // namespace atl
