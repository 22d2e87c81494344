#include <cstdio>
#include <iostream>
#include <iterator>

#include "cli/commands/commands.h"
#include "cli/json_field.h"
#include "common/command_line/help.h"
#include "common/status.h"

namespace atl {

void AddFieldCommand(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("field", "Print one field of the JSON on standard input");
  auto path = std::make_shared<std::string>();
  command
      ->add_option("PATH", *path,
                   "Names and positions, separated by dots: fragments.0.version, evaluations.-1.loss, "
                   "workers.name=w3.handle")
      ->required();
  command->callback([&action, path] {
    action = [path] {
      const std::string json(std::istreambuf_iterator<char>(std::cin), {});
      ATOLL_ASSIGN_OR_RETURN(const std::string value, JsonField(json, *path));
      std::printf("%s\n", value.c_str());
      return absl::OkStatus();
    };
  });
  SetHelp(*command, {.examples = {{"atollctl status --json | atollctl field committed_tokens"}},
                     .exit_codes = {ExitCode::kBadFiles}});
}

}  // namespace atl
