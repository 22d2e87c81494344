#ifndef ATOLL_COMMON_EXIT_CODES_H_
#define ATOLL_COMMON_EXIT_CODES_H_

#include <span>
#include <string>

#include "absl/status/status.h"

namespace atl {

/// Exit codes of all programs. The table in exit_codes.cc says what each means; `--help`, README.md and
/// docs/reference/cli.md show the same table, and a test compares them.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kUnavailable = 3,
  kStorage = 4,
  kRejected = 5,
  kBadFiles = 6,
  kNumerics = 7,
  kUncounted = 8,
  kUntrusted = 9,
  kInterrupted = 130,  // 128 + SIGINT, as shells report it
};

constexpr int ToInt(ExitCode code) { return static_cast<int>(code); }

/// The code of an error without a more specific cause. InvalidArgument, OutOfRange, Unimplemented: kUsage.
/// Unavailable, DeadlineExceeded: kUnavailable. DataLoss, ResourceExhausted: kStorage. FailedPrecondition,
/// AlreadyExists, PermissionDenied, Unauthenticated, Aborted: kRejected. NotFound: kBadFiles. Cancelled:
/// kInterrupted.
ExitCode DefaultExitCode(const absl::Status& status);

/// The code of an error that did not come from a coordinator. Like DefaultExitCode, but kBadFiles instead of
/// kRejected, because the error is about a file of this machine.
ExitCode LocalExitCode(const absl::Status& status);

/// The table for --help: a heading and one line per code.
std::string ExitCodeTable();

/// The same with the rows of these codes only, in the table's order.
std::string ExitCodeTable(std::span<const ExitCode> codes);

}  // namespace atl

#endif  // ATOLL_COMMON_EXIT_CODES_H_
