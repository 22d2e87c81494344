#ifndef ATOLL_COMMON_COMMAND_LINE_PARSE_H_
#define ATOLL_COMMON_COMMAND_LINE_PARSE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/exit_codes.h"

namespace atl {

/// Parses the command line with the layout of help.h. Nothing when the program goes on; otherwise its exit
/// code: kOk after --help or --version was printed, kUsage after a sentence on standard error says what is
/// wrong, which command or option was probably meant, and which --help to read. A value of a real-number
/// option must be finite. `check` runs behind a command line that parses; it throws a CLI::ParseError when
/// options are missing that only it knows to be needed.
std::optional<ExitCode> ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                                         const std::function<void()>& check = {});

/// Of an option with an unsigned number: CLI11 takes -1 for the largest there is.
CLI::Validator NotNegative();

/// Of an option with a path that must be given: an empty value is mostly a variable of a script that is not
/// set.
CLI::Validator NotEmpty();

/// What is wrong with a command or an option in `arguments` (without the program's name) that does not exist;
/// empty when all exist.
std::string UnknownWord(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace atl

#endif  // ATOLL_COMMON_COMMAND_LINE_PARSE_H_
