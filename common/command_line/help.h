#ifndef ATOLL_COMMON_COMMAND_LINE_HELP_H_
#define ATOLL_COMMON_COMMAND_LINE_HELP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/exit_codes.h"

namespace atl {

/// No line of --help is longer.
inline constexpr size_t kHelpColumns = 100;

struct HelpExample {
  std::string command;     // a whole command line, which can be typed as it is
  std::string about = {};  // what it does; empty when the command says it itself
};

/// What --help of one command shows below its options.
struct HelpText {
  std::vector<HelpExample> examples;
  /// With which codes the command can end, besides 0 and 2. The program itself shows the whole table.
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
