#ifndef ATOLL_COMMON_EXIT_CODES_H_
#define ATOLL_COMMON_EXIT_CODES_H_

#include "absl/status/status.h"

namespace atoll {

/// Exit codes of all programs; `--help` prints them, docs/operations.md explains them.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,       // a fault of ours
  kUsage = 2,          // command line or configuration
  kUnavailable = 3,    // port in use, coordinator unreachable, deadline passed
  kStorage = 4,        // data directory: locked, full, corrupt, not writable
  kRefused = 5,        // the coordinator refused: name taken, other run, other protocol, superseded
  kBadFiles = 6,       // token or model files: missing, truncated, of another vocabulary
  kNumerics = 7,       // the model diverged: loss or gradient not finite
  kUncounted = 8,      // a worker drained, but its last push came too late and did not count
  kUntrusted = 9,      // signatures show that the coordinator serves workers different parameters
  kInterrupted = 130,  // stopped by a second signal before it was done
};

constexpr int ToInt(ExitCode code) { return static_cast<int>(code); }

/// The code when nothing better is known about the cause. InvalidArgument, OutOfRange, Unimplemented: kUsage.
/// Unavailable, DeadlineExceeded: kUnavailable. DataLoss, ResourceExhausted: kStorage. FailedPrecondition,
/// AlreadyExists, PermissionDenied, Unauthenticated, Aborted: kRefused. NotFound: kBadFiles. Cancelled:
/// kInterrupted.
ExitCode DefaultExitCode(const absl::Status& status);

/// The table for --help: one line a code.
const char* ExitCodeTable();

}  // namespace atoll

#endif  // ATOLL_COMMON_EXIT_CODES_H_
