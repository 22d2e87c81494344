#ifndef ATOLL_COMMON_COMMAND_LINE_HELP_H_
#define ATOLL_COMMON_COMMAND_LINE_HELP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/exit_codes.h"

namespace atl {

/// Maximum length of a line of --help.
inline constexpr size_t kHelpColumns = 100;

struct HelpExample {
  std::string command;     // a complete command line
  std::string about = {};  // what it does; empty if the command is self-explanatory
};

/// The text that --help of a command shows below its options.
struct HelpText {
  std::vector<HelpExample> examples;
  /// The command's exit codes, besides 0 and 2. --help of the program shows the whole table.
  std::vector<ExitCode> exit_codes = {};
  /// Paragraphs below the examples; may be empty.
  std::string notes = {};
};

/// Sets what --help shows below the options of `command`. A subcommand gets the rows of its own exit codes
/// and a line that says where the program's options are listed.
void SetHelp(CLI::App& command, const HelpText& text);

/// `text` in lines of at most `width` columns, broken at spaces; a longer word keeps a line of its own.
std::vector<std::string> WrapText(const std::string& text, size_t width);

/// The layout of --help for `app` and all its subcommands: descriptions are wrapped to kHelpColumns.
void UseHelpLayout(CLI::App& app);

}  // namespace atl

#endif  // ATOLL_COMMON_COMMAND_LINE_HELP_H_
