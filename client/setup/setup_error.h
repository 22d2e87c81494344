#ifndef ATOLL_CLIENT_SETUP_SETUP_ERROR_H_
#define ATOLL_CLIENT_SETUP_SETUP_ERROR_H_

#include <optional>

#include "absl/status/status.h"
#include "common/exit_codes.h"

namespace atl {

/// The status with the exit code of the program that cannot start because of it. OK comes back as it is.
absl::Status WithExitCode(absl::Status status, ExitCode code);
/// The code that WithExitCode gave.
std::optional<ExitCode> GivenExitCode(const absl::Status& status);
/// The code that WithExitCode gave; without one LocalExitCode.
ExitCode SetupExitCode(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_SETUP_ERROR_H_
