#ifndef ATOLL_CLI_CONFIRM_H_
#define ATOLL_CLI_CONFIRM_H_

#include <istream>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace atl {

/// Asks before an action that cannot be undone. On a terminal, "y" or "yes" confirms and anything else
/// returns Cancelled. Without a terminal, returns InvalidArgument unless `yes` is set.
absl::Status Confirm(const std::string& question, bool yes);

/// The same, with the given terminal.
absl::Status ConfirmOn(std::istream& in, std::ostream& out, bool interactive, const std::string& question,
                       bool yes);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIRM_H_
