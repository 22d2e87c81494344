#ifndef ATOLL_CLI_EXIT_CODE_H_
#define ATOLL_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "common/exit_codes.h"

namespace atoll {

/// Notes on an error that it is the coordinator's answer: what it does not know (NotFound, Unimplemented) is
/// then refused (5), and not a missing file of this machine (6) or a wrong command line (2).
absl::Status FromCoordinator(absl::Status status);

/// The error with an exit code of its own.
absl::Status WithExitCode(absl::Status status, ExitCode code);

/// What atollctl exits with.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace atoll

#endif  // ATOLL_CLI_EXIT_CODE_H_
