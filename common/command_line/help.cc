#include "common/command_line/help.h"

#include <memory>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace atl {
namespace {

constexpr size_t kNameColumns = 30;  // options and subcommands; their descriptions begin behind
constexpr size_t kIndent = 2;

/// "  NAME      DESCRIPTION", the description wrapped; below the name when that is too long.
std::string Entry(const std::string& name, const std::string& description) {
  std::string text = std::string(kIndent, ' ') + name;
  std::vector<std::string> lines = WrapText(description, kHelpColumns - kNameColumns);
  if (lines.empty()) return text + "\n";
  if (text.size() + 1 < kNameColumns) {
    text.append(kNameColumns - text.size(), ' ');
  } else {
    absl::StrAppend(&text, "\n", std::string(kNameColumns, ' '));
  }
  absl::StrAppend(&text, lines.front(), "\n");
  for (size_t i = 1; i < lines.size(); ++i) {
    absl::StrAppend(&text, std::string(kNameColumns, ' '), lines[i], "\n");
  }
  return text;
}

class Layout final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = make_option_name(option, is_positional) + make_option_opts(option);
    absl::StripTrailingAsciiWhitespace(&name);  // CLI11 2.4 ends a default value with a space
    return Entry(name, make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    std::string text;
    for (const std::string& line : WrapText(app->get_description(), kHelpColumns)) {
      absl::StrAppend(&text, line, "\n");
    }
    return text;
  }
  // A group is followed by an empty line only when another one comes.
  std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }
};

}  // namespace

std::vector<std::string> WrapText(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back(word.data(), word.size());
    } else {
      absl::StrAppend(&lines.back(), " ", word);
    }
  }
  return lines;
}

void SetHelp(CLI::App& command, const HelpText& text) {
  std::string footer;
  if (!text.examples.empty()) {
    absl::StrAppend(&footer, text.examples.size() == 1 ? "Example:\n" : "Examples:\n");
    for (const HelpExample& example : text.examples) {
      if (!example.about.empty()) absl::StrAppend(&footer, "  # ", example.about, "\n");
      absl::StrAppend(&footer, "  ", example.command, "\n");
    }
    absl::StrAppend(&footer, "\n");
  }
  if (!text.notes.empty()) {
    for (const std::string& line : WrapText(text.notes, kHelpColumns)) absl::StrAppend(&footer, line, "\n");
    absl::StrAppend(&footer, "\n");
  }
  const CLI::App* root = &command;
  while (root->get_parent() != nullptr) root = root->get_parent();
  if (root == &command) {
    command.footer(footer + ExitCodeTable());
    return;
  }
  if (root->get_fallthrough()) {
    absl::StrAppend(&footer, "'", root->get_name(), " --help' lists the options of every command.\n\n");
  }
  std::vector<ExitCode> codes = {ExitCode::kOk, ExitCode::kUsage};
  codes.insert(codes.end(), text.exit_codes.begin(), text.exit_codes.end());
  command.footer(footer + ExitCodeTable(codes));
}

void UseHelpLayout(CLI::App& app) {
  app.formatter(std::make_shared<Layout>());
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) UseHelpLayout(*command);
}

}  // namespace atl
