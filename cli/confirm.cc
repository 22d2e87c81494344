#include "cli/confirm.h"

#include <unistd.h>

#include <iostream>

#include "absl/strings/ascii.h"

namespace atl {

absl::Status ConfirmOn(std::istream& in, std::ostream& out, bool interactive, const std::string& question,
                       bool yes) {
  if (yes) return absl::OkStatus();
  if (!interactive) {
    return absl::InvalidArgumentError(question + " No terminal can answer: add --yes to confirm");
  }
  out << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(in, answer);
  absl::AsciiStrToLower(&answer);
  if (answer == "y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("not confirmed; nothing was changed");
}

absl::Status Confirm(const std::string& question, bool yes) {
  const bool interactive = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  return ConfirmOn(std::cin, std::cerr, interactive, question, yes);
}

}  // namespace atl
