#include "common/command_line/parse.h"

#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/command_line/help.h"
#include "common/did_you_mean.h"
#include "common/standard_output.h"

namespace atl {
namespace {

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : Commands(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

/// Options of the command, and of those above it.
std::vector<const CLI::Option*> Options(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->nonpositional()) options.push_back(option);
    }
  }
  return options;
}

bool TakesPositionals(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) return true;
  }
  return false;
}

std::string Path(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : absl::StrCat(Path(*parent), " ", command.get_name());
}

std::string Unknown(const std::string& kind, const std::string& word,
                    const std::vector<std::string>& candidates) {
  const std::string meant = DidYouMean(word, candidates);
  return absl::StrCat("unknown ", kind, " '", word, "'",
                      meant.empty() ? "" : absl::StrCat("; did you mean '", meant, "'?"));
}

/// The dashes, which all have, make no option like another.
std::string UnknownOption(const std::string& word, const std::vector<std::string>& candidates) {
  std::vector<std::string> names;
  for (const std::string& candidate : candidates) names.emplace_back(absl::StripPrefix(candidate, "--"));
  const std::string meant = DidYouMean(std::string(absl::StripPrefix(word, "--")), names);
  return absl::StrCat("unknown option '", word, "'",
                      meant.empty() ? "" : absl::StrCat("; did you mean '--", meant, "'?"));
}

/// The command that the arguments lead to, and what stops the way there.
struct Walk {
  const CLI::App* command = nullptr;
  std::string problem;
};

Walk Follow(const CLI::App& app, const std::vector<std::string>& arguments) {
  Walk walk{.command = &app, .problem = ""};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") return walk;
    if (absl::StartsWith(word, "--")) {
      const std::string name = word.substr(0, word.find('='));
      std::vector<std::string> names;
      const CLI::Option* found = nullptr;
      for (const CLI::Option* option : Options(*walk.command)) {
        for (const std::string& known : option->get_lnames()) {
          names.push_back("--" + known);
          if (names.back() == name) found = option;
        }
      }
      if (found == nullptr) {
        walk.problem = UnknownOption(name, names);
        return walk;
      }
      // The word behind it is its value.
      if (found->get_items_expected_min() > 0 && word.find('=') == std::string::npos) ++i;
      continue;
    }
    if (absl::StartsWith(word, "-")) continue;
    if (const CLI::App* command = FindCommand(*walk.command, word); command != nullptr) {
      walk.command = command;
    } else if (!Commands(*walk.command).empty() && !TakesPositionals(*walk.command)) {
      std::vector<std::string> names;
      for (const CLI::App* known : Commands(*walk.command)) names.push_back(known->get_name());
      walk.problem = Unknown("command", word, names);
      return walk;
    }
  }
  return walk;
}

std::string NotFinite(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || std::isfinite(value)) return "";
  return text + " is not a finite number";
}

/// CLI11 takes "nan" and "inf" for a real number, and CLI::Range lets "nan" pass: no comparison with it
/// fails.
void RejectNotFinite(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (absl::StartsWith(option->get_type_name(), "FLOAT")) option->check(NotFinite);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) RejectNotFinite(*command);
}

std::vector<std::string> Arguments(int argc, const char* const* argv) {
  return argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>();
}

}  // namespace

CLI::Validator NotNegative() {
  return CLI::Validator(
      [](const std::string& text) {
        return absl::StartsWith(text, "-") ? absl::StrFormat("%s is negative; give a number from 0", text)
                                           : std::string();
      },
      /*validator_desc=*/"");
}

CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](const std::string& text) { return std::string(text.empty() ? "it is empty" : ""); },
      /*validator_desc=*/"");
}

std::string UnknownWord(const CLI::App& app, const std::vector<std::string>& arguments) {
  return Follow(app, arguments).problem;
}

std::optional<ExitCode> ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                                         const std::function<void()>& check) {
  UseHelpLayout(app);
  RejectNotFinite(app);
  try {
    app.parse(argc, argv);
    if (check) check();
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    const absl::Status written = FlushStandardOutput();
    if (written.ok()) return ExitCode::kOk;
    absl::FPrintF(stderr, "%s: %s\n", app.get_name(), written.message());
    return DefaultExitCode(written);
  } catch (const CLI::ParseError& error) {
    const Walk walk = Follow(app, Arguments(argc, argv));
    const std::string path = Path(*walk.command);
    absl::FPrintF(stderr, "%s: %s\nRun '%s --help' for its options and examples.\n", app.get_name(),
                  walk.problem.empty() ? error.what() : walk.problem, path);
    return ExitCode::kUsage;
  }
}

}  // namespace atl
