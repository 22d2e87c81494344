#ifndef ATOLL_CLI_DOCTOR_RUN_DIRECTORY_H_
#define ATOLL_CLI_DOCTOR_RUN_DIRECTORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/doctor/check.h"

namespace atl {

/// The nearest existing folder on the way to `directory`, or `directory` itself, if this user can make
/// folders there. The error names what is in the way: a file, a link without a target, a folder that this
/// user cannot read or write.
absl::StatusOr<std::string> UsableFolder(const std::string& directory);

/// Checks whether a coordinator of run `wanted` (empty: any run) accepts this data directory, and whether
/// this user can make it and write there. The directory need not exist. Leaves nothing behind; a coordinator
/// may serve the run meanwhile.
Check CheckRunDirectory(const std::string& directory, const std::string& wanted);

/// The verdict without a disk, for tests. `recorded`: the name of the run in the directory; empty: no run.
Check JudgeRunDirectory(const std::string& directory, const absl::StatusOr<std::string>& recorded,
                        const std::string& wanted);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_RUN_DIRECTORY_H_
