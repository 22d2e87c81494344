#ifndef ATOLL_CLI_EXIT_CODE_H_
#define ATOLL_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "common/exit_codes.h"

namespace atl {

/// Marks an error as the coordinator's answer: NotFound and Unimplemented then mean "refused" (5). An error
/// without the mark is about this machine: NotFound, PermissionDenied and FailedPrecondition then mean a file
/// (6).
absl::Status FromCoordinator(absl::Status status);
bool IsFromCoordinator(const absl::Status& status);

/// Attaches an exit code to the error.
absl::Status WithExitCode(absl::Status status, ExitCode code);

/// The exit code of atollctl.
ExitCode CommandExitCode(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_CLI_EXIT_CODE_H_
