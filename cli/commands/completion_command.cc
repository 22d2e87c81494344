#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "common/command_line/help.h"

namespace atl {
namespace {

/// Words that may follow each command: its subcommands and options.
void Collect(const CLI::App& app, const std::string& path,
             std::map<std::string, std::vector<std::string>>& words) {
  std::vector<std::string>& here = words[path];
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    here.push_back(child->get_name());
    Collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), words);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) here.push_back("--" + name);
  }
}

void PrintBash(const CLI::App& app) {
  std::map<std::string, std::vector<std::string>> words;
  Collect(app, "", words);
  std::string cases;
  for (const auto& [path, list] : words) {
    cases += "    '" + path + "') words='" + absl::StrJoin(list, " ") + "';;\n";
  }
  // Skips options before and between commands. Offers a file name if no word fits.
  std::printf(R"(_atollctl() {
  local path='' words='' word next
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] && continue
    next="${path:+$path }$word"
    _atollctl_words "$next" && path="$next"
  done
  _atollctl_words "$path"
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
_atollctl_words() {
  case "$1" in
%s    *) return 1;;
  esac
}
complete -o default -F _atollctl atollctl
)",
              cases.c_str());
}

}  // namespace

void AddCompletionCommand(CLI::App& app, Action& action) {
  CLI::App* completion = app.add_subcommand("completion", "Print a shell completion script");
  auto shell = std::make_shared<std::string>("bash");
  completion->add_option("SHELL", *shell, "Shell to complete in")
      ->check(CLI::IsMember({"bash"}))
      ->capture_default_str();
  SetHelp(*completion, {.examples = {{"source <(atollctl completion bash)"}}});
  // The callback keeps what the option writes to.
  completion->callback([&app, &action, shell] {
    action = [&app] {
      PrintBash(app);
      return absl::OkStatus();
    };
  });
}

}  // namespace atl
