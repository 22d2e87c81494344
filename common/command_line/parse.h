#ifndef ATOLL_COMMON_COMMAND_LINE_PARSE_H_
#define ATOLL_COMMON_COMMAND_LINE_PARSE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/exit_codes.h"

namespace atl {

/// Parses the command line with the layout of help.h. Returns nullopt if the program should continue,
/// otherwise its exit code: kOk after printing --help or --version, or
/// kStorage if standard output cannot be written; kUsage after printing an error with the
/// problem, a suggestion and the --help to read. Values of real-number options must be finite. `check` runs
/// after a successful parse; it throws CLI::ParseError if options are missing that only it requires.
std::optional<ExitCode> ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                                         const std::function<void()>& check = {});

/// Validator for unsigned numbers: CLI11 would read -1 as the largest number.
CLI::Validator NotNegative();

/// Validator for required paths: an empty value usually comes from an unset variable in a script.
CLI::Validator NotEmpty();

/// The error for an unknown command or option in `arguments` (without the program's name); empty if all
/// exist.
std::string UnknownWord(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace atl

#endif  // ATOLL_COMMON_COMMAND_LINE_PARSE_H_
