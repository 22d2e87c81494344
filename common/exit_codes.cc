#include "common/exit_codes.h"

namespace atoll {

ExitCode DefaultExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kStorage;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kAborted:
      return ExitCode::kRefused;
    case absl::StatusCode::kNotFound:
      return ExitCode::kBadFiles;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kInternal;
  }
}

const char* ExitCodeTable() {
  return "Exit codes:\n"
         "    0  done\n"
         "    1  internal error (please report it)\n"
         "    2  wrong command line or configuration\n"
         "    3  unavailable: port in use, coordinator not reachable\n"
         "    4  storage: data directory locked, full, corrupt or not writable\n"
         "    5  refused by the coordinator: name taken, another run, superseded\n"
         "    6  data files: missing, truncated, made with another tokenizer\n"
         "    7  numerics: loss or gradient not finite\n"
         "    8  a worker drained, but its last push did not count\n"
         "    9  untrusted: other workers signed other parameters than the coordinator served this one\n"
         "  130  interrupted\n";
}

}  // namespace atoll
