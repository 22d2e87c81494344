#ifndef ATOLL_CLI_CONFIRM_H_
#define ATOLL_CLI_CONFIRM_H_

#include <istream>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace atl {

/// Before what cannot be taken back. On a terminal the question is asked and "y" or "yes" goes ahead,
/// anything else is Cancelled; elsewhere nobody could answer, so that it is InvalidArgument unless `yes`.
absl::Status Confirm(const std::string& question, bool yes);

/// The same with the terminal given.
absl::Status ConfirmOn(std::istream& in, std::ostream& out, bool interactive, const std::string& question,
                       bool yes);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIRM_H_
